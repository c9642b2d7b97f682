import { publicRoutes } from '../http/public-route.ts'

/** Serves `/source`, which leads to the source code of this server, as AGPL-3.0 §13 requires. */
export function sourceRoutes(url: string) {
  return publicRoutes('source', [
    {
      path: '/source',
      respond: () => new Response(null, { status: 302, headers: { Location: url } }),
    },
  ])
}
