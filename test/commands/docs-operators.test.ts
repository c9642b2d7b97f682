import { expect, test } from 'bun:test'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkAddress } from '../../src/cli/doctor/address.ts'
import { listCodeBlocks } from '../support/docs.ts'
import { SCRATCH } from '../support/scratch.ts'
import { boot } from '../support/server.ts'
import { hasTool } from '../support/tools.ts'
import { until } from '../support/until.ts'
import { findFreePort } from '../support/loopback.ts'

test.skipIf(!hasTool('nginx'))(
  'doctor finds Host and WebSockets behind the nginx of the documentation',
  async () => {
    const port = await findFreePort()
    const baseUrl = `http://127.0.0.1:${port}`
    await using server = await boot({ baseUrl })
    await using _ = startNginx(port, new URL(server.url).port)
    await until(async () => (await fetch(`${baseUrl}/healthz`).catch(() => undefined))?.ok === true)
    const findings = await checkAddress({ baseUrl, trustedProxies: ['127.0.0.1/32'] })
    expect(findings.map(({ check, state }) => `${check} ${state}`)).toEqual([
      'BASE_URL ok',
      'reachable ok',
      'proxy ok',
      'TRUSTED_PROXIES ok',
    ])
  },
)

test.skipIf(!hasTool('systemd-analyze'))(
  'systemd accepts the unit of the documentation without warnings',
  () => {
    const folder = mkdtempSync(join(SCRATCH, 'systemd-'))
    const unit = readBlock('ini')
    const file = join(folder, 'tidings.service')
    // The program need not exist here.
    writeFileSync(file, unit.replace(/^ExecStart=\S+/m, 'ExecStart=/bin/true'))
    const { status, stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' })
    rmSync(folder, { recursive: true })
    const complaints = stderr.split('\n').filter(line => line.includes('tidings.service'))
    expect([status, complaints]).toEqual([0, []])
  },
)

/** Starts nginx with the documentation's block, on `port` without TLS, in front of `upstream`. */
function startNginx(port: number, upstream: string): AsyncDisposable {
  const folder = mkdtempSync(join(SCRATCH, 'nginx-'))
  const block = readBlock('nginx')
  const site = block
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port};`)
    .replace(/^ *ssl_.*\n/gm, '')
    .replace('127.0.0.1:3000', `127.0.0.1:${upstream}`)
  const config = join(folder, 'nginx.conf')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map(name => `${name}_temp_path ${folder}/${name};`)
    .join('\n')
  writeFileSync(
    config,
    `daemon off;\npid ${folder}/pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n${temporary}\n${site}}\n`,
  )
  const nginx = spawn('nginx', ['-p', folder, '-c', config], { stdio: 'ignore' })
  return {
    async [Symbol.asyncDispose]() {
      const exited = once(nginx, 'exit')
      nginx.kill('SIGTERM')
      await exited
      rmSync(folder, { recursive: true })
    },
  }
}

/** Returns the first block of a language in docs/self-hosting.md. */
function readBlock(language: string): string {
  const blocks = listCodeBlocks('docs/self-hosting.md')
  return blocks.find(block => block.language === language)?.text ?? ''
}
