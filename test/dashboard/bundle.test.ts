import { afterEach, expect, test } from 'bun:test'
import { bundlePages } from '../../src/dashboard/bundle.ts'
import { BUNDLES } from '../../src/dashboard/entries.ts'
import { makeFolder, SCRATCH } from '../support/scratch.ts'

afterEach(() => void (process.env['TMPDIR'] = SCRATCH))

test('the scripts of the pages are the same with another folder for temporary files', async () => {
  const builds: Record<string, string>[] = []
  for (const folder of ['/tmp', makeFolder()]) {
    process.env['TMPDIR'] = folder
    const files = await bundlePages(BUNDLES, false)
    const hashes = [...files].map(([name, bytes]) => [name, Bun.hash(bytes).toString()])
    builds.push(Object.fromEntries(hashes))
  }
  expect(builds[1]).toEqual(builds[0]!)
})
