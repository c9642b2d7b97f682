import { expect, setDefaultTimeout, test } from 'bun:test'
import { waitUntilReachable } from '../../src/database/reachable.ts'
import { checkHosts, checkStandbys } from '../../src/cli/doctor/standbys.ts'
import { newFeedProject } from '../support/worlds/feed-project.ts'
import { openFeed } from '../support/clients/feed.ts'
import { startPooler } from '../support/servers/pooler.ts'
import { boot } from '../support/servers/server.ts'
import { startPair } from '../support/servers/standby.ts'
import { scaled, until } from '../support/until.ts'
import { newSeed } from './random.ts'
import { PAIR_LOSSES, runStandby, toCluster } from './standby.ts'
import { openSql } from '../support/sql.ts'
import { forFile } from '../support/for-file.ts'

setDefaultTimeout(scaled(180_000))

const ASYNCHRONOUS = ' is asynchronous. A fail-over to it now would lose the last '

const pair = forFile(startPair)

test('scale §1 promotions under load lose nothing that was acknowledged', async () => {
  const seed = newSeed()
  const { figures, problems } = await runStandby({
    seed,
    times: 2,
    cluster: toCluster(pair),
    losses: PAIR_LOSSES,
  })
  if (problems.length > 0) console.error({ seed, ...figures })
  expect(problems.slice(0, 10)).toEqual([])
})

test('scale §1 each promotion begins one epoch, and the cursors of the API stay valid', async () => {
  await pair.addStandby()
  await pair.setSynchronous(true)
  await using server = await boot({ databaseUrl: pair.url })
  await using other = await boot({ databaseUrl: pair.url })
  const { project, member, request, postEvent, postEvents } = await newFeedProject(server)
  const stale = openSql(pair.url)
  await postEvents(3)
  const { hello, ...client } = await openFeed(server.url, member)
  await client.subscribe(project, { after: 3, epoch: hello.epoch })
  await until(async () =>
    (await checkStandbys(server.sql, pair.url))[0]!.message.includes(' is synchronous.'),
  )
  const [hosts] = await checkHosts(pair.url)
  expect(hosts).toMatchObject({ check: 'hosts', state: 'ok' })
  expect(hosts?.message).toMatch(/is the primary/)
  expect(hosts?.message).toMatch(/is a standby/)
  await pair.setSynchronous(false)
  // The sender of the WAL takes the reload up later than `pg_reload_conf` returns.
  await until(async () => {
    const [one] = await checkStandbys(server.sql, pair.url)
    return one!.state === 'ok' && one!.message.includes(ASYNCHRONOUS)
  })
  let following = await openFeed(other.url, member)
  await pair.killPrimary()
  await pair.promote()
  expect(await client.closed).toMatchObject({ code: 1012 })
  const again = await openFeed(server.url, member)
  expect(again.hello.epoch).not.toBe(hello.epoch)
  await again.subscribe(project, { after: 3, epoch: hello.epoch })
  expect(await again.next()).toMatchObject({ type: 'gap', reason: 'epoch', head: 3 })
  let seq: number | undefined
  await until(
    async () => (seq = (await postEvent('After').catch(() => undefined))?.seq) !== undefined,
  )
  expect(seq).toBe(4)
  expect(await again.seqs(1)).toEqual([4])
  const { data } = (await request('/v1/events?after=2')).body
  expect(data.items.map((one: { seq: number }) => one.seq)).toEqual([3, 4])
  // The other server has followed, and has begun no other epoch.
  expect(await following.closed).toMatchObject({ code: 1012 })
  following = await openFeed(other.url, member)
  expect(following.hello.epoch).toBe(again.hello.epoch)
  following.close()
  again.close()
  expect(await checkStandbys(server.sql, pair.url)).toMatchObject([{ state: 'warning' }])
  // A pool of a command also follows the primary.
  expect((await stale`select pg_is_in_recovery() as is_standby`)[0]).toEqual({ is_standby: false })
  await stale.end()
})

test('scale §1 without a primary a start waits, and says what each host is', async () => {
  await pair.addStandby()
  await pair.killPrimary()
  const [hosts] = await checkHosts(pair.url)
  expect(hosts).toMatchObject({ state: 'warning' })
  expect(hosts?.message).toMatch(/ is unreachable \(connect ECONNREFUSED .*\)/)
  const controller = new AbortController()
  const start = waitUntilReachable(pair.url, controller.signal)
  const sql = openSql(pair.url)
  await expect(sql`select 1`.execute()).rejects.toThrow(
    /^No host of the database is a primary: (connect ECONNREFUSED .*; .* is a standby|.* is a standby; connect ECONNREFUSED .*)$/,
  )
  await pair.promote()
  await start
  await sql.end()
})

test('scale §1 the primary is also found through poolers', async () => {
  await pair.addStandby()
  await using one = await startPooler(`${pair.primaryUrl}?host=127.0.0.1`, '')
  await using two = await startPooler(`${pair.standbyUrl}?host=127.0.0.1`, '')
  const hosts = [one, two].map(({ url }) => new URL(url).host).join()
  const pooled = openSql(`postgres://tidings@${hosts}/tidings?pgbouncer=true`)
  expect((await pooled`select pg_is_in_recovery() as is_standby`)[0]).toEqual({ is_standby: false })
  await pooled.end()
})
