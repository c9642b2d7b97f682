import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { SOURCE_URL, VERSION } from '../../src/base/version.ts'
import type { Component, ComponentNode } from './document.ts'
import { readStandardText } from './licence-texts.ts'

/** The extension of the file with the licences of the program and of its parts. */
export const NOTICES_EXTENSION = '.licences.txt'

const LINE = '='.repeat(80)
/** The licences of the libraries inside the runtime. */
const OF_RUNTIME = [
  ...['MIT', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'Zlib', 'Unicode-3.0', 'ICU'],
  ...['LGPL-2.0-only', 'LGPL-2.1-only'],
]

/**
 * Returns the licence of the program, and the licence text and the copyright of each part. Parts
 * with the same text share it. `root` is the folder of the checkout.
 */
export function toNotices(root: string, nodes: readonly ComponentNode[]): string {
  const parts = nodes.flatMap(({ component }) =>
    component.type === 'platform' ? [] : [component, ...(component.components ?? [])],
  )
  const names = new Map<string, string[]>()
  for (const part of parts) {
    const text = toText(part)
    names.set(text, [...(names.get(text) ?? []), toName(part)])
  }
  const [runtime] = nodes.filter(({ component }) => component.type === 'platform')
  return [
    `Tidings ${VERSION} is licensed under AGPL-3.0-only. Its source code: ${SOURCE_URL}`,
    readFileSync(join(root, 'LICENSE'), 'utf8'),
    'This program contains the following parts of others.',
    ...[...names].map(([text, all]) => `${all.sort().join('\n')}\n\n${text}`).sort(),
    `${runtime ? toName(runtime.component) : 'Bun'}\n\n${readRuntimeNotices()}`,
    ...OF_RUNTIME.map(id => `${id} (of libraries inside Bun)\n\n${readStandardText(id)}`),
  ]
    .map(section => `${section.trim()}\n`)
    .join(`\n${LINE}\n\n`)
}

/** Returns the copyright of a part and the text of each of its licences. */
function toText({ name, copyright, licenses = [] }: Component): string {
  const texts = licenses.map(({ license }) => {
    if (license.text) return license.text.content
    if ('id' in license) return readStandardText(license.id)
    throw new Error(`${name} has no licence text.`)
  })
  if (licenses.length === 0) texts.push('This library is in the public domain.')
  return [...(copyright === undefined ? [] : [copyright]), ...texts].join('\n\n').trim()
}

function toName({ group, name, version, licenses = [] }: Component): string {
  const full = [group, name].filter(Boolean).join('/')
  const ids = licenses.map(({ license }) => ('id' in license ? license.id : license.name))
  return `${[full, version].filter(Boolean).join(' ')} (${ids.join(', ') || 'public domain'})`
}

/** Returns the publisher's notices of the runtime and of the libraries inside it. */
function readRuntimeNotices(): string {
  const types = fileURLToPath(import.meta.resolve('bun-types/package.json'))
  const { version } = JSON.parse(readFileSync(types, 'utf8')) as { version: string }
  const runtime = process.versions['bun']
  if (version !== runtime) {
    throw new Error(`The notices are those of Bun ${version}, and this is Bun ${runtime}.`)
  }
  const text = readFileSync(join(types, '../docs/project/license.mdx'), 'utf8')
  return text.replace(/^---\n.*?\n---\n/s, '')
}
