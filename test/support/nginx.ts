import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { untilListening } from './loopback.ts'
import { SCRATCH } from './scratch.ts'

/**
 * Starts nginx with a block of the documentation, on `port` without TLS, and resolves when it
 * listens. `addresses` replaces the addresses of servers in it.
 */
export async function startNginx(
  block: string,
  { port, addresses }: { port: number; addresses: Readonly<Record<string, string>> },
): Promise<AsyncDisposable> {
  const folder = mkdtempSync(join(SCRATCH, 'nginx-'))
  const site = Object.entries(addresses).reduce(
    (text, [from, to]) => text.replace(from, to),
    block.replace('listen 443 ssl;', `listen 127.0.0.1:${port};`).replace(/^ *ssl_.*\n/gm, ''),
  )
  const config = join(folder, 'nginx.conf')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map(name => `${name}_temp_path ${folder}/${name};`)
    .join('\n')
  writeFileSync(
    config,
    `daemon off;\npid ${folder}/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n${temporary}\n${site}}\n`,
  )
  const nginx = spawn('nginx', ['-p', folder, '-c', config], { stdio: 'ignore' })
  await untilListening(port)
  return {
    async [Symbol.asyncDispose]() {
      const exited = once(nginx, 'exit')
      nginx.kill('SIGTERM')
      await exited
      rmSync(folder, { recursive: true })
    },
  }
}
