import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, realpathSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { clearFolder, listRunning } from './support/leftovers.ts'

// `bun test/leftovers.ts <command …>` runs a command with its own TMPDIR. It fails with a list if a
// process or file is left there afterwards, or if ./data, the default DATA_DIR, has a new file.

/** The watcher removes the files of a run shortly after its end. */
const GRACE_MS = 20_000
/** The shim that `bun run` puts into PATH is Bun's own and belongs to no run. */
const IS_BUN = /^bun-node-/
const DATA = resolve(import.meta.dirname, '../data')
const listData = () => (existsSync(DATA) ? readdirSync(DATA) : [])

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidings-leftovers-')))
chmodSync(folder, 0o755)
const dataBefore = listData()
const [command = '', ...words] = process.argv.slice(2)
const child = spawn(command, words, { env: { ...process.env, TMPDIR: folder }, stdio: 'inherit' })
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  // Ctrl-C reaches the child without us.
  process.on(signal, () => signal !== 'SIGINT' && child.kill(signal))
}
const [code] = (await once(child, 'exit')) as [number | null]

const deadline = performance.now() + GRACE_MS
let left = listLeft()
while (left.length > 0 && performance.now() < deadline) {
  await sleep(100)
  left = listLeft()
}
await clearFolder(folder)
if (left.length > 0) console.error(`Left behind by ${command}:\n${left.join('\n')}`)
process.exit(code !== 0 ? (code ?? 1) : left.length > 0 ? 1 : 0)

function listLeft(): string[] {
  return [
    ...listRunning(folder).map(({ pid, command }) => `  process ${pid}: ${command}`),
    ...readdirSync(folder)
      .filter(name => !IS_BUN.test(name))
      .map(name => `  ${join(folder, name)}`),
    ...listData()
      .filter(name => !dataBefore.includes(name))
      .map(name => `  ${join(DATA, name)}`),
  ]
}
