// The reference queues, on Node: `queue-peers.ts pg-boss | graphile-worker <database url>`. Each is
// configured as its documentation recommends for many small jobs.
import { runQueue, type Queue } from './queue-program.ts'

const [, , name = '', connectionString = ''] = process.argv
const BATCH = 1_000
const BUSY = 8

await runQueue(name === 'pg-boss' ? await createPgBoss() : await createGraphileWorker())

/** Fetches batches of 500 while they are full, and gets a NOTIFY for single jobs. */
async function createPgBoss(): Promise<Queue> {
  const { PgBoss } = await load('pg-boss')
  const boss = new PgBoss({ connectionString, useListenNotify: true, schedule: false })
  boss.on('error', console.error)
  await boss.start()
  await boss.createQueue('bench', { notify: true })
  const query = async (text: string) => (await boss.getDb().executeSql(text)).rows
  let added = 0
  let isStuck = false
  return {
    async prepare() {},
    async enqueue(count) {
      for (let first = 0; first < count; first += BATCH) {
        const jobs = Array.from({ length: Math.min(BATCH, count - first) }, () => ({
          data: { job: String(added++) },
        }))
        await boss.insert('bench', jobs)
      }
    },
    async enqueueStuck(count) {
      isStuck = true
      for (let first = 0; first < count; first += BATCH) {
        const jobs = Array.from({ length: Math.min(BATCH, count - first) }, () => ({
          data: {},
          group: { id: 'stuck' },
        }))
        await boss.insert('bench', jobs)
      }
      await query(`
        update pgboss.job set state = 'active', started_on = now()
        where id in (select id from pgboss.job where name = 'bench' and group_id = 'stuck' limit ${BUSY})
      `)
    },
    async add() {
      const job = String(added++)
      await boss.send('bench', { job })
      return job
    },
    async work(onStart) {
      const options = {
        batchSize: 500,
        localConcurrency: 2,
        burstWhenBatchFull: true,
        pollingIntervalSeconds: 0.5,
        ...(isStuck && { groupConcurrency: BUSY }),
      }
      await boss.work('bench', options, async (jobs: { data: { job: string } }[]) => {
        for (const { data } of jobs) onStart(data.job)
      })
    },
    async isDone() {
      const left = await query(`
        select from pgboss.job where name = 'bench' and state < 'completed' and group_id is null limit 1
      `)
      return left.length === 0
    },
    stop: () => boss.offWork('bench', { wait: true }),
  }
}

/**
 * Configured as its performance page recommends: a local queue of 500, outcomes in batches, 24 jobs
 * at a time.
 */
async function createGraphileWorker(): Promise<Queue> {
  const { Logger, makeWorkerUtils, runTaskList } = await load('graphile-worker')
  const { default: pg } = await load('pg')
  const logger = new Logger(() => () => {})
  const pgPool = new pg.Pool({ connectionString, max: 25 })
  pgPool.on('error', console.error)
  pgPool.on('connect', (client: NodeJS.EventEmitter) => client.on('error', console.error))
  const utils = await makeWorkerUtils({ pgPool, logger })
  await utils.migrate()
  const query = async (text: string, values: unknown[] = []) =>
    (await pgPool.query(text, values)).rows
  const preset = {
    worker: {
      concurrentJobs: 24,
      maxPoolSize: 25,
      localQueue: { size: 500 },
      completeJobBatchDelay: 0,
      failJobBatchDelay: 0,
    },
  }
  let added = 0
  let pool: { gracefulShutdown(): Promise<void> } | undefined
  const addJobs = (specs: object[]) =>
    query(
      `select 1 from graphile_worker.add_jobs(array(
        select json_populate_recordset(null::graphile_worker.job_spec, $1::json)
      ))`,
      [JSON.stringify(specs)],
    )
  return {
    async prepare() {},
    async enqueue(count) {
      await addJobs(
        Array.from({ length: count }, () => ({
          identifier: 'nothing',
          payload: { job: String(added++) },
        })),
      )
    },
    async enqueueStuck(count) {
      // Its own performance test does the same: two named queues that are locked.
      await addJobs(
        Array.from({ length: count }, (_, nth) => ({
          identifier: 'nothing',
          payload: {},
          queue_name: `stuck${nth % 2}`,
        })),
      )
      await query(`
        update graphile_worker._private_job_queues set locked_at = now(), locked_by = 'somebody'
        where queue_name like 'stuck%'
      `)
    },
    async add() {
      const job = String(added++)
      await utils.addJob('nothing', { job })
      return job
    },
    async work(onStart) {
      const tasks = { nothing: ({ job }: { job: string }) => onStart(job) }
      pool = runTaskList({ preset, logger, noHandleSignals: true }, tasks, pgPool)
    },
    async isDone() {
      const left = await query(`
        select from graphile_worker._private_jobs where job_queue_id is null limit 1
      `)
      return left.length === 0
    },
    async stop() {
      await pool?.gracefulShutdown()
    },
  }
}

/**
 * Imports a computed name, which the type checker does not resolve: only the bench installs the
 * package.
 */
async function load(peer: string) {
  return await import(peer)
}
