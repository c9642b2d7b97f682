import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Certificate } from '../certificates.ts'
import { findFreePort } from '../loopback.ts'
import { makeFolder } from '../scratch.ts'
import { startNginx } from './nginx.ts'

const PROGRAM = join(import.meta.dirname, 'http-target.mjs')

/** A request as a server of another program parsed it. */
interface Parsed {
  method: string
  path: string
  headers: Record<string, string>
  /** In base64. */
  body: string
}

/** An HTTP server as receivers have: in its own process, by the parser of its runtime. */
interface HttpTarget extends AsyncDisposable {
  port: number
  /** Every request that it accepted, in order of arrival. */
  received: Parsed[]
}

const COMMANDS = { Bun: process.execPath, Node: 'node' }
type Runtime = keyof typeof COMMANDS

/** Starts a server on Bun or Node. It speaks TLS if it has a certificate. */
export async function startHttpTarget(
  runtime: Runtime,
  certificate?: Certificate,
): Promise<HttpTarget> {
  const child = spawn(
    COMMANDS[runtime],
    [PROGRAM, ...(certificate ? [toFolder(certificate)] : [])],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  )
  const exited = once(child, 'exit')
  const started = Promise.withResolvers<number>()
  void exited.then(([code]) => started.reject(new Error(`${runtime} has ended with ${code}`)))
  const received: Parsed[] = []
  createInterface({ input: child.stdout }).on('line', line => {
    const value = JSON.parse(line) as Parsed | { port: number }
    if ('port' in value) started.resolve(value.port)
    else received.push(value)
  })
  return {
    port: await started.promise,
    received,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
    },
  }
}

/** Starts a server behind nginx, which ends TLS if it has a certificate. */
export async function startTargetBehindNginx(
  runtime: Runtime,
  certificate?: Certificate,
): Promise<HttpTarget> {
  const target = await startHttpTarget(runtime)
  const port = await findFreePort()
  const nginx = await startNginx(
    `server {
      listen 443 ssl;
      location / {
        proxy_pass http://127.0.0.1:${target.port};
        proxy_http_version 1.1;
        proxy_set_header Host $http_host;
      }
    }`,
    { port, addresses: {}, certificate },
  )
  return {
    port,
    received: target.received,
    async [Symbol.asyncDispose]() {
      await nginx[Symbol.asyncDispose]()
      await target[Symbol.asyncDispose]()
    },
  }
}

/** Writes a certificate to a folder, as `cert.pem` and `key.pem`. */
function toFolder({ cert, key }: Certificate): string {
  const folder = makeFolder()
  writeFileSync(join(folder, 'cert.pem'), cert)
  writeFileSync(join(folder, 'key.pem'), key)
  return folder
}
