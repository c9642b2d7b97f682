import { setTimeout } from 'node:timers/promises'
import {
  ConnectionError,
  RateLimitError,
  TidingsError,
} from '../../../clients/typescript/src/errors.ts'
import { parseResponse } from '../../../clients/typescript/src/response.ts'

const TIMEOUT_MS = 30_000
const MAX_WAIT_MS = 60_000
const MAX_WAITS = 5

/** Requests the management API with a token. */
export interface ManagementApi {
  /** Resolves to the `data` of the response. Rejects with a `TidingsError`. */
  request<Data>(method: 'GET' | 'POST' | 'PATCH', path: string, body?: object): Promise<Data>
  /** Resolves to the items of all pages of a list. `path` has a query. */
  list<Item>(path: string): Promise<Item[]>
}

/**
 * Creates a `ManagementApi`. It waits when the token has no requests left. It repeats no other
 * request, because an unanswered one may have created something.
 */
export function createManagementApi(url: string, token: string): ManagementApi {
  async function attempt(init: RequestInit, path: string): Promise<unknown> {
    let response: Response, text: string
    try {
      response = await fetch(url + path, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) })
      text = await response.text()
    } catch (cause) {
      const isLate = cause instanceof Error && cause.name === 'TimeoutError'
      throw new ConnectionError(`No response from ${url}. Check TIDINGS_URL.`, isLate, cause)
    }
    const outcome = parseResponse(response, text)
    if (outcome instanceof TidingsError) throw outcome
    return outcome.data
  }

  const request: ManagementApi['request'] = async <Data>(
    method: string,
    path: string,
    body?: object,
  ) => {
    const init: RequestInit = {
      method,
      // A followed redirect would turn POST into GET.
      redirect: 'manual',
      headers: {
        Accept: 'application/json',
        Authorization: `Bearer ${token}`,
        ...(body && { 'Content-Type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    }
    for (let waits = 0; ; waits++) {
      try {
        return (await attempt(init, path)) as Data // The server's schemas guarantee the shape.
      } catch (error) {
        const waitMs = error instanceof RateLimitError ? error.retryAfterMs : undefined
        if (waitMs === undefined || waitMs > MAX_WAIT_MS || waits >= MAX_WAITS) throw error
        await setTimeout(waitMs)
      }
    }
  }

  return {
    request,
    async list<Item>(path: string) {
      const items: Item[] = []
      for (let cursor: string | null = ''; cursor !== null;) {
        const next: string = cursor && `&cursor=${encodeURIComponent(cursor)}`
        const page: { items: Item[]; nextCursor: string | null } = await request(
          'GET',
          `${path}&limit=100${next}`,
        )
        items.push(...page.items)
        cursor = page.nextCursor
      }
      return items
    },
  }
}
