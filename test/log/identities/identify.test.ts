import { expect, test } from 'bun:test'
import type { Pool } from '../../../src/database/pool.ts'
import { createInFlightRequests } from '../../../src/http/limits/idempotency.ts'
import { createIdentityWriter } from '../../../src/log/identities/identify.ts'

type Rows = { ord: number; outcome: string; body: string }[]

/** Returns a writer, and the numbers of rows of its batches. */
function createScene() {
  const sizes: number[] = []
  const pool = {
    run: (work: (sql: unknown) => Promise<Rows>) =>
      work(async (_: unknown, projects: string) => {
        const list = projects.split(',')
        sizes.push(list.length)
        return list.map((body, n) => ({ ord: n + 1, outcome: 'done', body }))
      }),
  }
  const writer = createIdentityWriter({
    pool: pool as unknown as Pool,
    inflight: createInFlightRequests(),
    quotas: { check() {}, count() {} },
    onIdentified() {},
  })
  return { writer, sizes }
}

test.each([
  [250, {}, [100, 100, 50]],
  [9, { properties: { text: 'x'.repeat(60_000) } }, [4, 4, 1]],
  [5, { aliases: Array<string>(50).fill('@ada') }, [1, 1, 1, 1, 1]],
  [2, { properties: { text: 'x'.repeat(300_000) } }, [1, 1]],
])('a batch is bounded by rows, by bytes and by aliases (%i)', async (count, more, expected) => {
  const { writer, sizes } = createScene()
  const job = { organizationId: 'o', projectId: 'p', requestId: 'r', claim: undefined }
  const input = { user_id: 'ada', ...more }
  await Promise.all(Array.from({ length: count }, () => writer.identify({ ...job, input })))
  expect(sizes).toEqual(expected)
})
