import { createHttpClient } from '../support/clients/http-client.ts'
import type { RunResult } from './ledger-check.ts'
import { startFleet } from './fleet.ts'
import { createRandom } from './random.ts'

const LIMIT = 100

/**
 * Sends one request more than the limit over three servers, as fast as possible, for each of
 * `times` keys.
 */
export async function runLimit({
  seed,
  times,
}: {
  seed: number
  times: number
}): Promise<RunResult> {
  const random = createRandom(seed)
  const fleet = await startFleet({ servers: 3, projects: times, limit: LIMIT })
  try {
    const problems: string[] = []
    for (const { id, key } of fleet.projects) {
      const answers = await Promise.all(
        Array.from({ length: LIMIT + 1 }, async () => {
          const client = createHttpClient(random.pick(fleet.urls()))
          const answer = await client.request('POST', '/v1/events', {
            headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
            body: JSON.stringify({ channelName: 'payments', title: 'New payment' }),
          })
          client.close()
          return answer
        }),
      )
      const passed = answers.filter(({ status }) => status === 201)
      const refused = answers.filter(({ status }) => status === 429)
      if (passed.length !== LIMIT || refused.length !== 1)
        problems.push(`${passed.length} passed, ${refused.length} were refused`)
      const remaining = passed.map(({ headers }) => Number(headers.get('x-ratelimit-remaining')))
      if (remaining.sort((a, b) => a - b).some((left, nth) => left !== nth))
        problems.push(`Remaining was ${remaining.join(' ')}`)
      const resets = new Set(answers.map(({ headers }) => headers.get('x-ratelimit-reset')))
      if (resets.size !== 1) problems.push(`Reset was ${[...resets].join(' ')}`)
      const [row] = await fleet.sql<[{ events: number }]>`
        select count(*)::int as events from events where project_id = ${id}
      `
      if (row.events !== LIMIT) problems.push(`${row.events} events are stored`)
    }
    return { figures: { keys: times, requests: times * (LIMIT + 1) }, problems }
  } finally {
    await fleet.close()
  }
}
