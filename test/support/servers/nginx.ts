import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Certificate } from '../certificates.ts'
import { untilListening } from '../loopback.ts'
import { SCRATCH } from '../scratch.ts'

interface NginxOptions {
  port: number
  /** Replaces the addresses of servers in the block. */
  addresses: Readonly<Record<string, string>>
  certificate?: Certificate | undefined
}

/** Starts nginx with a block of the documentation, and resolves when it listens on `port`. */
export async function startNginx(
  block: string,
  { port, addresses, certificate }: NginxOptions,
): Promise<AsyncDisposable> {
  const folder = mkdtempSync(join(SCRATCH, 'nginx-'))
  if (certificate) {
    writeFileSync(join(folder, 'cert.pem'), certificate.cert)
    writeFileSync(join(folder, 'key.pem'), certificate.key)
  }
  const listening = certificate
    ? `listen 127.0.0.1:${port} ssl;\nssl_certificate ${folder}/cert.pem;\nssl_certificate_key ${folder}/key.pem;`
    : `listen 127.0.0.1:${port};`
  const site = Object.entries(addresses).reduce(
    (text, [from, to]) => text.replace(from, to),
    block.replace(/^ *ssl_.*\n/gm, '').replace('listen 443 ssl;', listening),
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
