import { Elysia } from 'elysia'
import { withCall, type Call } from './call.ts'

/** A GET route without authentication, such as a page, a file or a health check. */
export interface PublicRoute {
  path: string
  respond(request: Request): Response | Promise<Response>
}

/** Returns an Elysia plugin with these routes. */
export function publicRoutes(name: string, routes: readonly PublicRoute[]) {
  const plugin = new Elysia({ name }).use(withCall).onAfterHandle(addRequestId)
  for (const { path, respond } of routes) {
    plugin.get(path, ({ request }) => respond(request), { detail: { hide: true } })
  }
  return plugin
}

/** Adds the id of the request to a response. */
export function addRequestId({ response, exchange }: { response: unknown; exchange: Call }): void {
  if (response instanceof Response) response.headers.set('X-Request-Id', exchange.requestId)
}
