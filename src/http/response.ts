import type { Answer } from './failures.ts'

/** A JSON response of ours; its headers are those of every response, `more`, and the answer's own. */
export function toResponse(
  { status, body, headers, cookies = [] }: Answer,
  requestId: string,
  more: Readonly<Record<string, string>> = {},
): Response {
  const response = new Response(body, {
    status,
    headers: {
      'Content-Type': 'application/json; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'X-Request-Id': requestId,
      ...more,
      ...headers,
    },
  })
  for (const cookie of cookies) response.headers.append('Set-Cookie', cookie)
  return response
}
