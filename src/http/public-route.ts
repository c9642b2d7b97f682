import { Elysia } from 'elysia'
import { withCall, type Call } from './call.ts'

/** A GET route that anybody may ask for: pages, files, health. */
export interface PublicRoute {
  path: string
  respond(request: Request): Response | Promise<Response>
}

/** Mounts open routes. */
export function publicRoutes(name: string, routes: readonly PublicRoute[]) {
  const plugin = new Elysia({ name }).use(withCall).onAfterHandle(addRequestId)
  for (const { path, respond } of routes) {
    plugin.get(path, ({ request }) => respond(request), { detail: { hide: true } })
  }
  return plugin
}

/** Tells the id of the request, as every answer does. */
export function addRequestId({ response, exchange }: { response: unknown; exchange: Call }): void {
  if (response instanceof Response) response.headers.set('X-Request-Id', exchange.requestId)
}
