import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { text } from 'node:stream/consumers'
import { until } from './until.ts'

const HERE = resolve(import.meta.dirname, '../generators')
export const MODULES = join(HERE, 'node_modules')

/** Installs the tools that read the documents, unless they are installed. */
export async function installGenerators(): Promise<void> {
  const { dependencies } = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  if (Object.keys(dependencies).every(name => existsSync(join(MODULES, name)))) return
  await run(process.execPath, ['install', '--frozen-lockfile', '--silent'], { cwd: HERE })
}

interface RunOptions {
  cwd: string
  env?: Record<string, string>
}

/** Runs a tool of the generators on Node. Returns its output; throws with it if it fails. */
export function runTool(name: string, args: string[], options: RunOptions): Promise<string> {
  return run('node', [join(MODULES, '.bin', name), ...args], options)
}

/** Returns the output of a command; throws with it if the command fails. */
export async function run(command: string, args: string[], options: RunOptions): Promise<string> {
  const { cwd, env = {} } = options
  const child = spawn(command, args, { cwd, env: { ...process.env, CI: '1', ...env } })
  const ended = new Promise<number | null>(resolve => child.once('close', resolve))
  const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  if (code === 0) return output
  throw new Error(`${[command, ...args].join(' ')} ended with ${code}:\n${output}${errors}`)
}

/** A Prism that rejects each request and answer that `document` does not declare. */
export async function startPrism(document: string, upstream: string) {
  const port = await findPort()
  const args = ['proxy', document, upstream, '--errors', '--port', String(port)]
  const child = spawn('node', [join(MODULES, '.bin/prism'), ...args], { stdio: 'pipe' })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', part => (output += part))
  await until(() => output.includes('is listening') || child.exitCode !== null, 90_000)
  if (child.exitCode !== null) throw new Error(output)
  return {
    url: `http://127.0.0.1:${port}`,
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  }
}

async function findPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await new Promise(resolve => server.close(resolve))
  return port
}
