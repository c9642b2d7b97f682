import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { connect as connectSocket, createServer } from 'node:net'
import { parseUrl } from '../../src/base/database-url.ts'
import { waitUntilReachable } from '../../src/database/reachable.ts'
import { connect } from '../../src/database/sql.ts'
import { checkHosts, checkReplicas, checkStandbys } from '../../src/cli/doctor/standbys.ts'
import { newFeedProject } from '../support/worlds/feed-project.ts'
import { openFeed } from '../support/clients/feed.ts'
import { registry } from '../../src/base/metrics.ts'
import { listen } from '../support/loopback.ts'
import { startPooler } from '../support/servers/pooler.ts'
import { boot } from '../support/servers/server.ts'
import { startPair, type Pair } from '../support/servers/standby.ts'
import { newSignedInAccount } from '../support/worlds/signed-in-account.ts'
import { scaled, until } from '../support/until.ts'
import { newSeed } from './random.ts'
import { PAIR_LOSSES, runStandby, toCluster } from './standby.ts'
import { openSql } from '../support/sql.ts'

setDefaultTimeout(scaled(180_000))

let pair: Pair
beforeAll(async () => void (pair = await startPair()))
afterAll(() => pair[Symbol.asyncDispose]())

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

test('scale §1 a fail-over that another server did not outlive begins a new epoch', async () => {
  await using server = await boot({ databaseUrl: pair.url })
  const { postEvent } = await newFeedProject(server)
  await pair.setSynchronous(false)
  const other = connect(pair.url, { name: 'check', max: 1 })
  const [{ pid, at }] = await other<[{ pid: number; at: Date }]>`
    select pg_backend_pid() as pid, clock_timestamp() as at
  `
  const readEpoch = async () => (await server.sql`select epoch from installation`)[0]?.['epoch']
  const epoch = await readEpoch()
  // The server has counted the other one.
  await until(async () => {
    const rows = await server.sql`
      select from pg_stat_activity
      where application_name = 'tidings check' and pid <> ${pid} and query_start > ${at}
    `
    return rows.length > 0
  })
  await pair.killPrimary()
  await other.end({ timeout: 0 })
  await pair.promote()
  await until(async () => (await postEvent('After').catch(() => undefined))?.seq !== undefined)
  await until(async () => (await readEpoch().catch(() => epoch)) !== epoch, 30_000)
  await pair.addStandby()
  await pair.setSynchronous(true)
})

test('scale §1 an epoch outlives a fail-over unless accepted events are lost', async () => {
  await using server = await boot({ databaseUrl: pair.url })
  const { project, member, postEvent, postEvents } = await newFeedProject(server)
  const stale = openSql(pair.url)
  await postEvents(3)
  const { hello, ...client } = await openFeed(server.url, member)
  await client.subscribe(project, { after: 3, epoch: hello.epoch })
  // An asynchronous standby that has everything is promoted.
  await pair.setSynchronous(false)
  await pair.killPrimary()
  await pair.promote()
  const retry = async () => (await postEvent('After').catch(() => undefined))?.seq
  let seq: number | undefined
  await until(async () => (seq = await retry()) !== undefined)
  expect(seq).toBe(4)
  expect(await client.seqs(1)).toEqual([4])
  expect(await checkStandbys(server.sql, pair.url)).toMatchObject([{ state: 'warning' }])

  await pair.addStandby()
  const [asynchronous] = await checkStandbys(server.sql, pair.url)
  expect(asynchronous).toMatchObject({ check: 'standbys', state: 'ok' })
  expect(asynchronous?.message).toMatch(
    /is asynchronous. A fail-over to it now would lose the last /,
  )
  await pair.setSynchronous(true)
  await until(async () =>
    (await checkStandbys(server.sql, pair.url))[0]!.message.includes(' is synchronous.'),
  )
  const operator = await newSignedInAccount(server, { isOperator: true })
  expect((await operator.get('/api/server')).body.data.database).toMatchObject({
    standbys: [{ isSynchronous: true }],
  })
  const [hosts] = await checkHosts(pair.url)
  expect(hosts).toMatchObject({ check: 'hosts', state: 'ok' })
  expect(hosts?.message).toMatch(/is the primary/)
  expect(hosts?.message).toMatch(/is a standby/)
  await pair.setSynchronous(false)

  // This one lacks two events that were accepted.
  await pair.pauseReplication()
  await postEvents(2)
  expect(await client.seqs(2)).toEqual([5, 6])
  await pair.killPrimary()
  await pair.promote()
  expect(await client.closed).toMatchObject({ code: 1012 })
  const again = await openFeed(server.url, member)
  expect(again.hello.epoch).not.toBe(hello.epoch)
  await again.subscribe(project, { after: 6, epoch: hello.epoch })
  expect(await again.next()).toMatchObject({ type: 'gap', reason: 'epoch', head: 4 })
  await until(async () => (seq = await retry()) !== undefined)
  expect(seq).toBe(5)
  expect(await again.seqs(1)).toEqual([5])
  again.close()
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

test('scale §2 a replica answers reads, and nobody sees that it lags, hangs or dies', async () => {
  await pair.addStandby()
  await using server = await boot({ databaseUrl: pair.url, databaseReadUrl: pair.standbyUrl })
  const { project, member, request, postEvent } = await newFeedProject(server)
  let posted = 0
  /** Posts events, and reads each at once: by API key, and as a member. */
  async function postAndRead(times: number): Promise<void> {
    for (let nth = 0; nth < times; nth++) {
      const { seq } = await postEvent(`Payment ${++posted}`)
      const path = `/api/projects/${project}`
      const pages = await Promise.all([
        request('/v1/events?limit=1'),
        request(`/v1/events?after=${seq - 1}`),
        member.get(`${path}/events?limit=1`),
        member.get(`${path}/events?q=payment&limit=1`),
      ])
      for (const { status, body } of pages) {
        expect(status).toBe(200)
        expect(body.data.items[0].seq).toBe(seq)
      }
      const histogram = await member.get(`${path}/histogram`)
      expect(histogram.status).toBe(200)
    }
  }
  expect(await checkReplicas(pair.standbyUrl)).toMatchObject([{ state: 'ok' }])
  /** Reads until the replica has answered more reads. A busy one is left out at times. */
  async function readReplica(more: number): Promise<void> {
    const before = await countReads()
    await until(async () => {
      await postAndRead(1)
      return (await countReads()) >= before + more
    })
  }
  await readReplica(20)
  const client = await openFeed(server.url, member)
  await client.subscribe(project, { after: 0, epoch: client.hello.epoch })
  expect(await client.seqs(posted)).toEqual(Array.from({ length: posted }, (_, nth) => nth + 1))
  client.close()

  pair.signal('standby', 'SIGSTOP')
  await postAndRead(2)
  pair.signal('standby', 'SIGCONT')
  await readReplica(1)
  await pair.pauseReplication()
  await postAndRead(2)
  const reading = postAndRead(5)
  pair.signal('standby', 'SIGKILL')
  await reading
  expect(await checkReplicas(pair.standbyUrl)).toMatchObject([{ state: 'warning' }])
})

test('scale §2 a replica behind PgBouncer answers reads', async () => {
  await pair.addStandby()
  await using pooler = await startPooler(`${pair.standbyUrl}?host=127.0.0.1`, '')
  const databaseReadUrl = `${pooler.url}?pgbouncer=true`
  expect(await checkReplicas(databaseReadUrl)).toMatchObject([{ state: 'ok' }])
  // The primary is also found through poolers.
  await using other = await startPooler(`${pair.primaryUrl}?host=127.0.0.1`, '')
  const [one, two] = [pooler, other].map(({ url }) => new URL(url).host)
  const pooled = openSql(`postgres://tidings@${one},${two}/tidings?pgbouncer=true`)
  expect((await pooled`select pg_is_in_recovery() as is_standby`)[0]).toEqual({ is_standby: false })
  await pooled.end()
  await using server = await boot({ databaseUrl: pair.url, databaseReadUrl })
  const { request, postEvent } = await newFeedProject(server)
  const before = await countReads()
  await until(async () => {
    const { seq } = await postEvent('Payment')
    const { body } = await request('/v1/events?limit=1')
    expect(body.data.items[0].seq).toBe(seq)
    return (await countReads()) > before
  })
})

test('scale §2 doctor finds a load balancer in DATABASE_READ_URL', async () => {
  const { hosts } = parseUrl(pair.url)
  let turn = 0
  const balancer = createServer(client => {
    const { host, port } = hosts[turn++ % hosts.length]!
    const upstream = connectSocket(port, host)
    client.pipe(upstream).pipe(client)
    for (const socket of [client, upstream]) socket.on('error', () => {})
  })
  const port = await listen(balancer)
  const [finding] = await checkReplicas(`postgres://tidings@127.0.0.1:${port}/tidings`)
  expect(finding).toMatchObject({ check: 'replicas', state: 'failed' })
  expect(finding?.message).toMatch(/leads to several servers/)
  balancer.close()
})

/** Returns how many reads replicas have answered in this process. */
async function countReads(): Promise<number> {
  const { values } = await registry.getSingleMetric('tidings_reads_total')!.get()
  return values.find(({ labels }) => labels['server'] === 'replica')?.value ?? 0
}
