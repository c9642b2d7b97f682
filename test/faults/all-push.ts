import type { Sql } from '../../src/database/sql.ts'
import { parseId, toId } from '../../src/base/ids.ts'
import { newMember } from '../support/worlds/signed-in-account.ts'
import { insertSubscription } from '../support/worlds/push.ts'
import type { PushService, TestBrowser } from '../support/servers/push-service.ts'
import type { RemovedEvents, RunResult } from './ledger-check.ts'
import type { Fleet } from './fleet.ts'

const PEOPLE = 2

/** A browser that gets a project's events. */
export interface Device {
  projectId: string
  /** The uuid of the subscription. */
  id: string
  browser: TestBrowser
}

/** Subscribes members of each project; every seventh first push to a device is refused. */
export async function addDevices(
  { sql, projects }: Fleet,
  service: PushService,
): Promise<Device[]> {
  const devices: Device[] = []
  for (const { id: projectId } of projects) {
    const [row] = await sql<[{ organization_id: string }]>`
      select organization_id from projects where id = ${projectId}
    `
    for (let made = 0; made < PEOPLE; made++) {
      const organization = { uuid: row.organization_id }
      const account = await newMember({ sql, url: '' }, organization, 'viewer')
      const browser = service.subscribe()
      const id = await insertSubscription({ sql }, account, browser)
      service.script(
        browser,
        ...Array.from({ length: 50 }, (_, nth) => ({ status: nth % 7 === 3 ? 503 : 201 })),
      )
      devices.push({ projectId, id: parseId('psh', id) ?? '', browser })
    }
  }
  return devices
}

/**
 * Checks that every event reached each device or has a reason, and that recorded pushes arrived.
 */
export async function checkPushes({
  sql,
  service,
  devices,
  leavers,
}: {
  sql: Sql
  service: PushService
  devices: readonly Device[]
  leavers: RemovedEvents
}): Promise<RunResult> {
  const problems = service.problems.map(problem => `a push was refused: ${problem}`)
  const sums = { pushed: 0, withheld: 0 }
  for (const [nth, { projectId, id, browser }] of devices.entries()) {
    const rows = await sql<{ event_id: string; state: string; reason: string | null }[]>`
      select d.event_id, d.state, d.reason
      from delivery_records d
      where d.project_id = ${projectId} and d.kind = 'push' and d.target_id = ${id}
    `
    const records = new Map(rows.map(row => [row.event_id, row]))
    const events = await sql<
      { id: string }[]
    >`select id from events where project_id = ${projectId}`
    const there = new Set(events.map(one => one.id))
    const due = [
      ...there,
      ...[...leavers.values()]
        .filter(one => one.projectId === projectId && one.isDone && !there.has(one.id))
        .map(one => one.id),
    ]
    const arrived = new Set(
      service.of(browser).map(({ notification }) => /evt_\w+$/.exec(notification.navigate)?.[0]),
    )
    for (const eventId of due) {
      const { state = 'nowhere', reason = '' } = records.get(eventId) ?? {}
      if (state === 'withheld') sums.withheld++
      else if (state === 'delivered' && arrived.has(toId('evt', eventId))) sums.pushed++
      else problems.push(`device ${nth}: the push of ${eventId} is ${state}: ${reason}`)
    }
  }
  return {
    figures: sums,
    problems,
  }
}
