/** Requests that the server of a release answered, with the Idempotency-Key `repeated`. */
export const REPEATED: Record<string, object> = {
  '/v1/identify': { user_id: 'eve', aliases: ['ada@example.com'] },
  '/v1/events': { channelName: 'payments', title: 'Keyed' },
}
