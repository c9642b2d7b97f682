import type { Identified, IdentifyInput } from './schema.ts'

/** The reasons that tell apart whose name an alias already is. */
const OWNER_REASONS = new Set([
  "Equals another user's user_id",
  'Already an alias of this user',
  'Already an alias of another user',
])
const HIDDEN_REASON = 'Already in use'

/**
 * Removes from a response to identify what the request itself did not send: stored properties, and
 * the owners of aliases. The result is for keys that may not read users. `body` can be a replay.
 */
export function hideStored(body: string, input: IdentifyInput): string {
  const { success, data, requestId } = JSON.parse(body) as {
    success: true
    data: Identified
    requestId: string
  }
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
            reason: OWNER_REASONS.has(reason) ? HIDDEN_REASON : reason,
          })),
        }),
      },
    },
    requestId,
  })
}
