import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Certificate } from '../certificates.ts'
import { findFreePort } from '../loopback.ts'
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

/** Starts a server on Node behind nginx, which ends TLS if it has a certificate. */
export async function startTargetBehindNginx(certificate?: Certificate): Promise<HttpTarget> {
  const child = spawn('node', [PROGRAM], { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const started = Promise.withResolvers<number>()
  void exited.then(([code]) => started.reject(new Error(`Node has ended with ${code}`)))
  const received: Parsed[] = []
  createInterface({ input: child.stdout }).on('line', line => {
    const value = JSON.parse(line) as Parsed | { port: number }
    if ('port' in value) started.resolve(value.port)
    else received.push(value)
  })
  const target = await started.promise
  const port = await findFreePort()
  const nginx = await startNginx(
    `server {
      listen 443 ssl;
      location / {
        proxy_pass http://127.0.0.1:${target};
        proxy_http_version 1.1;
        proxy_set_header Host $http_host;
      }
    }`,
    { port, addresses: {}, certificate },
  )
  return {
    port,
    received,
    async [Symbol.asyncDispose]() {
      await nginx[Symbol.asyncDispose]()
      child.kill('SIGKILL')
      await exited
    },
  }
}
