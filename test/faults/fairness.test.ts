import { afterEach, expect, test } from 'bun:test'
import { forProcess } from '../support/for-file.ts'
import { until } from '../support/until.ts'
import { openDeliveries } from '../support/worlds/deliveries.ts'
import { addTarget, createTestKind } from '../support/worlds/delivery-kind.ts'

const deliveries = forProcess(openDeliveries)
afterEach(() => deliveries.clear())

const BACKLOG = 100_000

test('case 23: a target with 100,000 pending deliveries does not delay a new one', async () => {
  const big = await deliveries.newTarget()
  await deliveries.append(big.projectId, BACKLOG)
  const { sql } = deliveries
  await sql`
    insert into outbox (project_id, event_id, kind, target_id)
    select project_id, id, 'webhook', ${big.targetId} from events where project_id = ${big.projectId}
  `
  const sent = new Set<string>()
  const outbox = await deliveries.start(
    createTestKind({
      async send({ eventId, targetId }) {
        sent.add(`${eventId} ${targetId}`)
        return { kind: 'done' }
      },
    }),
  )
  await until(() => sent.size > 100)
  const small = await deliveries.newTarget()
  const [eventId] = await deliveries.append(small.projectId)
  outbox.wake([small.projectId])
  await until(() => sent.has(`${eventId} ${small.targetId}`))
  // All earlier deliveries would come first.
  expect(sent.size).toBeLessThan(BACKLOG / 2)
})

test('case 23: 300 hanging targets do not delay one that answers', async () => {
  const { projectId, targetId } = await deliveries.newTarget()
  const { sql } = deliveries
  for (let made = 0; made < 300; made++) await addTarget(sql, projectId)
  const hanging: string[] = []
  const answered = new Set<string>()
  const timeoutMs = 15_000
  const kind = createTestKind({
    timeoutMs,
    async send({ eventId, targetId: of }, stop) {
      if (of === targetId) {
        answered.add(eventId)
        return { kind: 'done' }
      }
      hanging.push(eventId)
      const signal = AbortSignal.any([stop, AbortSignal.timeout(timeoutMs)])
      await new Promise(resolve => signal.addEventListener('abort', resolve))
      return { kind: 'retry', reason: 'It hangs' }
    },
  })
  const outbox = await deliveries.start(kind)
  const first = await deliveries.append(projectId, 2)
  const firstMs = performance.now()
  outbox.wake([projectId])
  // All of them hang: free slots come only from attempts that time out.
  await until(() => hanging.filter(eventId => first.includes(eventId)).length > 300)
  await until(() => first.every(eventId => answered.has(eventId)))
  const waitedMs = performance.now() - firstMs
  const [eventId = ''] = await deliveries.append(projectId)
  const startedMs = performance.now()
  outbox.wake([projectId])
  await until(() => answered.has(eventId))
  // The first time waited for attempts to time out.
  expect((performance.now() - startedMs) / waitedMs).toBeLessThan(1)
})
