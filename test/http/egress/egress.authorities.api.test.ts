import { expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createAuthority } from '../../support/certificates.ts'
import { makeFolder } from '../../support/scratch.ts'
import { startReceiver } from '../../support/servers/receiver.ts'

const PROGRAM = join(import.meta.dir, '../../support/egress-status.ts')
const authority = createAuthority()

/** Runs a request in a process with these variables. */
async function send(url: string, env: Record<string, string>): Promise<string> {
  const child = spawn(process.execPath, [PROGRAM, url], {
    env: { PATH: process.env['PATH'], ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let output = ''
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()))
  await once(child, 'close')
  return output.trim()
}

test.each([
  ['nothing', undefined, 'tls'],
  ['NODE_EXTRA_CA_CERTS', 'NODE_EXTRA_CA_CERTS', '200'],
  ['SSL_CERT_FILE', 'SSL_CERT_FILE', '200'],
])('the certificate of a private authority, with %s', async (_, variable, outcome) => {
  await using receiver = await startReceiver({ certificate: authority.issue(['hook.test']) })
  const file = join(makeFolder(), 'authority.pem')
  writeFileSync(file, authority.ca)
  const url = `https://hook.test:${receiver.port}/`
  expect(await send(url, variable === undefined ? {} : { [variable]: file })).toBe(outcome)
})
