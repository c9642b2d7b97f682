import { expect, test } from 'bun:test'
import { boot } from '../support/servers/server.ts'
import { until } from '../support/until.ts'
import { openDeliveries } from '../support/worlds/deliveries.ts'
import { createTestKind } from '../support/worlds/delivery-kind.ts'

test('design §5 a delivery that is overdue makes the server degraded, and not unready; metrics count it', async () => {
  await using deliveries = await openDeliveries()
  const { projectId, targetId } = await deliveries.newTarget()
  // More than the concurrency limit of one target, so that some stay due.
  await deliveries.append(projectId, 20)
  await deliveries.sql`
    insert into outbox (project_id, event_id, kind, target_id, available_at)
    select project_id, id, 'webhook', ${targetId}, now() - interval '5 minutes'
    from events
    where project_id = ${projectId}
  `
  const release = Promise.withResolvers<void>()
  const { databaseUrl } = deliveries
  const send = () => release.promise.then(() => ({ kind: 'done' }) as const)
  const options = { kinds: [createTestKind({ send })] }
  await using server = await boot({ databaseUrl, metricsPort: 0 }, options)
  const ready = async () => {
    const response = await fetch(`${server.url}/readyz`)
    const body = (await response.json()) as { status: string; degraded?: string[] }
    return { code: response.status, ...body }
  }
  await until(async () => 'degraded' in (await ready()))
  expect(await ready()).toMatchObject({
    code: 200,
    status: 'ready',
    degraded: [expect.stringMatching(/^The oldest due delivery is overdue by 3\d\d s$/)],
  })
  release.resolve()
  await until(async () => !('degraded' in (await ready())))
  expect(await ready()).toMatchObject({ code: 200, status: 'ready' })
  expect(await deliveries.ended(projectId)).toHaveLength(20)
  const url = `http://127.0.0.1:${server.server.metricsPort}/metrics`
  const metrics = await (await fetch(url)).text()
  for (const line of [
    'delivery_attempts_total{kind="webhook",outcome="done"}',
    'delivery_seconds_count{kind="webhook"}',
    'outbox_pending_deliveries{kind="webhook"}',
    'outbox_overdue_seconds{kind="webhook"}',
    'delivery_attempts_in_progress{kind="webhook"}',
    'dispatch_lag_seconds',
  ])
    expect(metrics).toContain(`\ntidings_${line} `)
})

test('a database that responds late makes the server degraded, and not unready', async () => {
  await using server = await boot()
  const ready = async () => {
    const response = await fetch(`${server.url}/readyz`)
    const { degraded = [] } = (await response.json()) as { degraded?: string[] }
    return [response.status, ...degraded]
  }
  await until(async () => (await ready()).length === 1)
  await server.sql.begin(async tx => {
    await tx`lock table migrations in access exclusive mode`
    expect(await ready()).toEqual([200, 'The database took longer than a second to respond'])
  })
  await until(async () => (await ready()).length === 1)
})
