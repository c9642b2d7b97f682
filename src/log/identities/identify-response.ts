import { parseExact } from '../../http/exact-json.ts'
import type { Identified, IdentifyInput } from './schema.ts'

/** Why an alias was not created, by the codes that the SQL function `claim_aliases` returns. */
const REASONS: Readonly<Record<string, string>> = {
  repeated: 'Repeated in this request',
  own_user_id: "Equals this user's own user_id",
  other_user_id: "Equals another user's user_id",
  own_alias: 'Already an alias of this user',
  other_alias: 'Already an alias of another user',
  too_many: 'This user already has 1,000 aliases',
}

/** The codes that tell whose name an alias is. */
const OWNERS = new Set(['other_user_id', 'own_alias', 'other_alias'])
const HIDDEN_REASON = 'Already in use'

interface IdentifyResponse {
  success: true
  data: Identified
  requestId: string
}

/**
 * Returns a response to identify, whose body Postgres has written, for a key that may read users.
 * Codes become reasons, and all else keeps its bytes. `body` can be a replay.
 */
export function describeFailedAliases(body: string): string {
  // Most responses have none, and need not be parsed.
  if (!body.includes('"failed":[')) return body
  const response = parseExact(body).value as IdentifyResponse
  for (const one of response.data.aliases.failed ?? [])
    one.reason = REASONS[one.reason] ?? one.reason
  return JSON.stringify(response)
}

/**
 * Returns a response to identify for a key that may not read users. It lacks what the request
 * itself did not send: stored properties, and the owners of aliases. `body` can be a replay.
 */
export function hideStored(body: string, input: IdentifyInput): string {
  const { success, data, requestId } = JSON.parse(body) as IdentifyResponse
  const { created, failed } = data.aliases
  return JSON.stringify({
    success,
    data: {
      ...data,
      // The user of a replay may be erased since. Its response is empty.
      properties: (data.userId !== null && input.properties) || {},
      aliases: {
        created,
        ...(failed && {
          failed: failed.map(({ alias, reason }) => ({
            alias,
            reason: OWNERS.has(reason) ? HIDDEN_REASON : (REASONS[reason] ?? reason),
          })),
        }),
      },
    },
    requestId,
  })
}
