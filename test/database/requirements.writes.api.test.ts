import { expect, test } from 'bun:test'
import { findWriteProblem } from '../../src/database/requirements.ts'
import { connect } from '../../src/database/sql.ts'
import { makeDataDir, start } from '../support/servers/embedded.ts'
import { boot } from '../support/servers/server.ts'
import { until } from '../support/until.ts'

const REASON =
  'Commits wait for a synchronous standby. Start it, or correct synchronous_standby_names'

test('reliability §7 a missing synchronous standby is a 503 of /readyz with this reason', async () => {
  // Standbys are a setting of the whole cluster, so this one is not shared.
  const postgres = await start(await makeDataDir())
  const admin = connect(postgres.superuserUrl, { name: 'admin', max: 1 })
  const setStandby = async (name: string) => {
    await admin.unsafe(`alter system set synchronous_standby_names = '${name}'`)
    await admin`select pg_reload_conf()`
  }
  try {
    await using server = await boot({ databaseUrl: postgres.url })
    const ready = async () => {
      const response = await fetch(`${server.url}/readyz`)
      const { reasons = [] } = (await response.json()) as { reasons?: string[] }
      return [response.status, ...reasons]
    }
    expect(await ready()).toEqual([200])
    await setStandby('x')
    await until(async () => (await ready())[0] === 503)
    expect(await ready()).toEqual([503, REASON])
    const countWaiting = async () =>
      (await admin`select from pg_stat_activity where wait_event = 'SyncRep'`).count
    const waiting = await countWaiting()
    for (let n = 0; n < 5; n++) expect(await ready()).toEqual([503, REASON])
    expect(await findWriteProblem(server.sql)).toBe(REASON)
    // The checks add no session that waits. Those of background work may come and go.
    expect(await countWaiting()).toBeLessThanOrEqual(waiting + 2)
    await setStandby('')
    await until(async () => (await ready())[0] === 200)
  } finally {
    await setStandby('')
    await admin.end({ timeout: 1 })
    await postgres.stop()
  }
})
