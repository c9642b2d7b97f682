import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

const ROOT = join(import.meta.dirname, '../..')

/** Runs API tests in a process of their own, and returns what it prints. */
export async function runApiTests(
  names: readonly string[],
  env: Record<string, string>,
): Promise<string> {
  const files = names.map(name => `./test/${name}.api.test.ts`)
  const lost = files.filter(file => !existsSync(join(ROOT, file)))
  if (lost.length > 0) throw new Error(`There is no ${lost.join(', ')}`)
  const child = spawn(process.execPath, ['test', '--timeout', '60000', ...files], {
    cwd: ROOT,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [output] = await Promise.all([text(child.stderr), once(child, 'exit')])
  return output
}
