import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkLicence, readStandardText } from '../../../packaging/sbom/licence-texts.ts'
import { findNativeLicence } from '../../../packaging/sbom/native-licences.ts'
import { toNpmNodes } from '../../../packaging/sbom/npm-components.ts'
import { makeFolder } from '../../support/scratch.ts'

/** Builds the component of a package with this package.json and no other file. */
function build(manifest: Record<string, unknown>) {
  const root = makeFolder()
  const folder = join(root, 'node_modules/part')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), JSON.stringify(manifest))
  const hash = { alg: 'SHA-512', content: '00' } as const
  const locked = { name: 'part', version: '1.0.0', dependencies: [], hash }
  return toNpmNodes(root, ['node_modules/part'], new Map([['part', locked]]))
}

test('a part without a licence, a text or an author does not go into the program', () => {
  expect(() => build({ author: 'Ada' })).toThrow('names no licence')
  expect(() => build({ license: 'MIT' })).toThrow('no file with its licence')
  expect(build({ license: 'MIT', author: 'Ada' })[0]?.component).toMatchObject({
    licenses: [{ license: { id: 'MIT' } }],
    copyright: 'Copyright (c) Ada',
  })
})

test.each(['GPL-2.0-only', 'SSPL-1.0', 'UNLICENSED', 'MIT AND OpenSSL', 'constructor'])(
  'a part under %s does not go into the program',
  license => {
    expect(() => build({ license, author: 'Ada' })).toThrow(`part is under ${license}`)
  },
)

test.each(['MIT', '(MIT OR GPL-2.0-only)', 'ISC AND MPL-2.0'])('a part may be under %s', licence =>
  expect(() => checkLicence('part', licence)).not.toThrow(),
)

test('a library beside Postgres without a known licence does not go into the program', () => {
  expect(() => findNativeLicence('libreadline.so.8')).toThrow('libreadline.so.8')
  expect(findNativeLicence('libssl.so.1.1').ids).toEqual(['OpenSSL'])
})

test('standard texts name no copyright holder', () => {
  for (const id of ['MIT', 'ISC', 'BSD-2-Clause', 'BSD-3-Clause', '0BSD', 'X11'])
    expect(readStandardText(id)).not.toMatch(/^Copyright/m)
})
