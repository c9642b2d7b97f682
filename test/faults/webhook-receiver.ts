import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { Webhook } from 'standardwebhooks'
import type { Sql } from '../../src/database/sql.ts'
import { newId, parseId } from '../../src/base/ids.ts'
import type { Secrets } from '../../src/database/secrets/secrets.ts'
import { newSigningSecret } from '../../src/delivery/webhooks/signing.ts'
import { toSealedCell } from '../../src/delivery/webhooks/sealing.ts'
import { listen } from '../support/loopback.ts'
import { findHeaderProblem } from '../support/request-head.ts'

/** One webhook delivery that arrived; ids are uuids. */
export interface Receipt {
  /** Its webhook-id. */
  id: string
  eventId: string
  targetId: string
  /** The arrival by performance.now(), in milliseconds. */
  atMs: number
  /** True if it was answered 2xx. */
  isAccepted: boolean
}

/** A webhook, with the secrets that verify its deliveries. */
export interface ReceivingWebhook {
  projectId: string
  targetId: string
}

/** A real receiver of the server's own webhooks, which verifies everything. */
export interface WebhookReceiver extends AsyncDisposable {
  port: number
  receipts: Receipt[]
  /** Deliveries with an invalid head or signature, or for another webhook. */
  forgeries: string[]
  /** Inserts a webhook of a project. */
  add(sql: Sql, secrets: Secrets, projectId: string, respond: Respond): Promise<ReceivingWebhook>
}

/** `isFirst` is true for the first delivery of an event. */
export type Respond = (response: ServerResponse, isFirst: boolean) => void

export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const receipts: Receipt[] = []
  const forgeries: string[] = []
  const hooks = new Map<string, { verifier: Webhook; respond: Respond }>()
  const seen = new Set<string>()

  async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const targetId = (request.url ?? '').slice(1)
    const hook = hooks.get(targetId)
    const body = await text(request)
    const receipt = { id: '', eventId: '', targetId, atMs: performance.now(), isAccepted: false }
    try {
      const problem = findHeaderProblem(request.rawHeaders)
      if (problem !== undefined) throw new Error(problem)
      if (!hook) throw new Error(`No webhook ${targetId} was inserted`)
      const headers = Object.entries(request.headers).map(([name, value]) => [name, String(value)])
      const message = hook.verifier.verify(body, Object.fromEntries(headers)) as {
        data: { id: string }
      }
      receipt.id = String(request.headers['webhook-id'])
      receipt.eventId = parseId('evt', message.data.id) ?? ''
    } catch (error) {
      forgeries.push(String(error))
      response.writeHead(400).end()
      return
    }
    receipts.push(receipt)
    response.on('finish', () => (receipt.isAccepted = response.statusCode < 300))
    const isFirst = !seen.has(receipt.id)
    seen.add(receipt.id)
    hook.respond(response, isFirst)
  }

  const server = createServer((request, response) => {
    // A killed server may cut off its request.
    receive(request, response).catch(() => response.destroy())
  })
  const port = await listen(server)
  return {
    port,
    receipts,
    forgeries,
    async add(sql, secrets, projectId, respond) {
      const { uuid } = newId('whk')
      const secret = newSigningSecret()
      const url = `http://127.0.0.1:${port}/${uuid}`
      hooks.set(uuid, { verifier: new Webhook(secret), respond })
      await insertReceivingWebhook(sql, secrets, { projectId, uuid, url, secret })
      return { projectId, targetId: uuid }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}

/** Inserts a webhook for all events of a project. */
export async function insertReceivingWebhook(
  sql: Sql,
  secrets: Secrets,
  {
    projectId,
    uuid,
    url,
    secret,
  }: { projectId: string; uuid: string; url: string; secret: string },
): Promise<void> {
  await sql`
    insert into webhooks (project_id, id, name, url, host, preset, has_all_channels, secret)
    values (
      ${projectId}, ${uuid}, 'A webhook', ${secrets.seal(url, toSealedCell('url', uuid))}, ${new URL(url).host},
      'standard', true, ${secrets.seal(secret, toSealedCell('secret', uuid))}
    )
  `
}
