import { Elysia } from 'elysia'
import { respond, withCall } from '../../http/call.ts'
import { toSuccess } from '../../http/envelope.ts'
import { deferBody, readPath } from '../../http/route.ts'
import { createReceiver, type ReceiveParts } from './receive.ts'

const PATH = '/in/:token'

/** The route of the addresses of hooks. The token in the path is the credential. */
export function inRoutes(parts: ReceiveParts) {
  const receive = createReceiver(parts)
  return new Elysia({ name: 'hooks.in' }).use(withCall).post(
    PATH,
    async ({ exchange: call, request }) => {
      const { token } = readPath({ request, call, route: {} }, PATH)
      const events = await receive(call, request, String(token))
      const body = toSuccess(JSON.stringify({ events }), call.requestId)
      return respond(call, { status: 200, body })
    },
    { parse: deferBody, detail: { hide: true } },
  )
}
