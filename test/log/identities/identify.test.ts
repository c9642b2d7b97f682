import { expect, test } from 'bun:test'
import type { Pool } from '../../../src/database/pool.ts'
import { createInFlightRequests } from '../../../src/http/limits/idempotency.ts'
import { createIdentityWriter } from '../../../src/log/identities/identify.ts'
import { until } from '../../support/until.ts'

type Rows = { ord: number; outcome: string; body: string }[]

/** Creates a writer, and batches that end when they are told to. */
function createScene() {
  const batches: { projects: string[]; end(): void }[] = []
  const pool = {
    run: (work: (sql: unknown) => Promise<Rows>) =>
      work((_: unknown, projects: string) => {
        const list = projects.slice(1, -1).replaceAll('"', '').split(',')
        const { promise, resolve } = Promise.withResolvers<Rows>()
        const rows = list.map((body, n) => ({ ord: n + 1, outcome: 'done', body }))
        batches.push({
          projects: list,
          end: () => resolve(rows),
        })
        return promise
      }),
  }
  const writer = createIdentityWriter({
    pool: pool as unknown as Pool,
    inflight: createInFlightRequests(),
    quotas: { check() {}, count() {} },
  })
  const identify = (organization: string, more: { text?: string; aliases?: string[] } = {}) =>
    writer.identify({
      organizationId: organization,
      projectId: `project of ${organization}`,
      input: {
        user_id: 'ada',
        ...(more.text !== undefined && { properties: { text: more.text } }),
        ...(more.aliases && { aliases: more.aliases }),
      },
      requestId: 'r',
      claim: undefined,
    })
  return { writer, batches, identify }
}

/** Ends all batches, until each request has its answer, and returns their sizes. */
async function endAll(
  batches: ReturnType<typeof createScene>['batches'],
  requests: Promise<unknown>[],
): Promise<number[]> {
  let answered = 0
  for (const request of requests) void request.then(() => answered++)
  for (let ended = 0; answered < requests.length; ended++) {
    await until(() => ended < batches.length)
    batches[ended]!.end()
    const due = batches.slice(0, ended + 1).reduce((sum, batch) => sum + batch.projects.length, 0)
    await until(() => answered >= Math.min(due, requests.length))
  }
  return batches.map(({ projects }) => projects.length)
}

test('a batch has identifies of one organization, and another one does not wait for it', async () => {
  const { batches, identify } = createScene()
  const hostile = Array.from({ length: 95 }, () => identify('a', { text: 'x'.repeat(60_000) }))
  await until(() => batches.length > 0)
  const other = identify('b')
  await until(() => batches.length > 1)
  expect(batches.map(({ projects }) => projects)).toEqual([
    Array(4).fill('project of a'),
    ['project of b'],
  ])
  batches[1]?.end()
  expect((await other).body).toBe('project of b')
  await endAll(batches, [...hostile, other])
  expect(await Promise.all(hostile)).toHaveLength(95)
})

test('a batch is bounded by rows, by bytes and by aliases', async () => {
  for (const [count, more, sizes] of [
    [250, {}, [100, 100, 50]],
    [9, { text: 'x'.repeat(60_000) }, [4, 4, 1]],
    [5, { aliases: Array(50).fill('@ada') }, [1, 1, 1, 1, 1]],
    [2, { text: 'x'.repeat(300_000) }, [1, 1]],
  ] as const) {
    const { batches, identify } = createScene()
    const all = Array.from({ length: count }, () => identify('a', more as { text?: string }))
    expect(await endAll(batches, all)).toEqual([...sizes])
  }
})
