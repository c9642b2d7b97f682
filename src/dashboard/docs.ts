import type { OpenRoute } from '../http/open-route.ts'

/** The API description in both spellings of its path, and its page for people. */
export function docsRoutes(getDocument: () => Record<string, unknown>): OpenRoute[] {
  const toJson = () =>
    Response.json(getDocument(), { headers: { 'Cache-Control': 'public, max-age=300' } })
  return [
    { path: '/openapi.json', respond: toJson },
    { path: '/api/openapi.json', respond: toJson },
  ]
}
