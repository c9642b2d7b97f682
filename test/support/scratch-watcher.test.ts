import { expect, test } from 'bun:test'
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readStart } from './leftovers.ts'
import { until } from './until.ts'

function watch(folder: string, start: string) {
  const watcher = join(import.meta.dirname, './scratch-watcher.ts')
  return Bun.spawn([process.execPath, watcher, String(process.pid), start, folder])
}

test('the watcher of a run waits for the end of the run', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'run-'))
  const watcher = watch(folder, readStart(process.pid) ?? '0')
  await Bun.sleep(500)
  expect(existsSync(folder)).toBe(true)
  watcher.kill()
  await watcher.exited
})

test.skipIf(!existsSync('/proc/self/stat'))(
  'the watcher of a run ends even if another process gets the id of the run',
  async () => {
    const folder = mkdtempSync(join(tmpdir(), 'run-'))
    const watcher = watch(folder, '1')
    await until(() => watcher.exitCode !== null)
    expect(watcher.exitCode).toBe(0)
    expect(existsSync(folder)).toBe(false)
  },
)
