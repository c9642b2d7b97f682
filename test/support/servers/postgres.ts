import { createHash } from 'node:crypto'
import { basename, join } from 'node:path'
import { SERVER_ROLE } from '../../../src/database/embedded/cluster.ts'
import { startEmbedded, type EmbeddedPostgres } from '../../../src/database/embedded/embedded.ts'
import { migrate } from '../../../src/database/migrate.ts'
import { FUNCTIONS, MIGRATIONS } from '../../../src/database/sql-files.ts'
import { connect, type Sql } from '../../../src/database/sql.ts'
import { makeFolder, SHARED } from '../scratch.ts'
import { startCitus, type CitusCluster } from './citus.ts'

/** The databases of a process begin like this, so that the runner finds what it has left. */
const PREFIX = process.env['TIDINGS_TEST_DATABASES'] ?? 'test_'
let isOutliving = false
const newName = () =>
  (isOutliving ? `shared_${PREFIX}` : PREFIX) + crypto.randomUUID().replaceAll('-', '')

/** The databases that `open` makes are dropped at the end of this process, by the runner. */
export async function outlivingFile<T>(open: () => Promise<T>): Promise<T> {
  const others = made.splice(0)
  isOutliving = true
  try {
    return await open()
  } finally {
    isOutliving = false
    made.splice(0, Infinity, ...others)
  }
}

let cluster: Promise<{ postgres: Cluster; admin: Sql; template: string }> | undefined
const made: string[] = []
/** The folder of a cluster for one file. */
let ownDataDir: string | undefined

/** Gives the tests of a file a Postgres of their own, until the result is disposed of. */
export function isolateCluster(): AsyncDisposable {
  const [shared, sharedDataDir, sharedNames] = [cluster, ownDataDir, made.splice(0)]
  ;[cluster, ownDataDir] = [undefined, makeFolder()]
  return {
    async [Symbol.asyncDispose]() {
      await closeCluster()
      ;[cluster, ownDataDir] = [shared, sharedDataDir]
      made.push(...sharedNames)
    },
  }
}

/**
 * Returns the Postgres that all tests of this run share, with a template database at the current
 * schema.
 */
async function getCluster() {
  cluster ??= open()
  return cluster
}

/** With this variable, the URL of a superuser, tests use the cluster there. */
export const FOREIGN = 'TIDINGS_TEST_POSTGRES'

/** The part of an embedded Postgres that tests use. */
type Cluster = Pick<EmbeddedPostgres, 'url' | 'superuserUrl' | 'how' | 'stop'>

async function openPostgres(): Promise<Cluster> {
  const superuserUrl = process.env[FOREIGN]
  if (superuserUrl === undefined)
    return startEmbedded({ dataDir: ownDataDir ?? join(SHARED, 'cluster') })
  const url = new URL(superuserUrl)
  url.username = SERVER_ROLE
  url.password = 'secret'
  return { url: url.href, superuserUrl, how: 'attached', stop: async () => {} }
}

async function open() {
  const postgres = await openPostgres()
  const admin = connect(postgres.superuserUrl, {
    name: 'test admin',
    max: 1,
    settings: { statement_timeout: 60_000, lock_timeout: 60_000 },
  })
  if (postgres.how === 'started') await drop(admin, 'test_')
  const template = await ensureTemplate(postgres, admin)
  return { postgres, admin, template }
}

/** Drops the databases whose names begin like this, such as those of a killed process. */
export async function dropDatabases(prefix: string): Promise<string[]> {
  return drop((await getCluster()).admin, prefix)
}

async function drop(admin: Sql, prefix: string): Promise<string[]> {
  const found = await admin<{ name: string }[]>`
    select datname as name from pg_database where starts_with(datname, ${prefix}) order by datname
  `
  for (const { name } of found) await admin.unsafe(`drop database if exists ${name} with (force)`)
  return found.map(({ name }) => name)
}

/** Created once for each state of sql. */
async function ensureTemplate(postgres: Cluster, admin: Sql): Promise<string> {
  const hash = createHash('sha256')
    .update(JSON.stringify([SERVER_ROLE, MIGRATIONS, FUNCTIONS]))
    .digest('hex')
    .slice(0, 12)
  const template = `template_${hash}`
  await admin`select pg_advisory_lock(1)`
  const [found] = await admin`select from pg_database where datname = ${template}`
  if (!found) {
    const draft = `${template}_draft`
    await admin.unsafe(`drop database if exists ${draft} with (force)`)
    await admin.unsafe(`create database ${draft} owner ${SERVER_ROLE}`)
    await migrate(toUrl(postgres, draft))
    await admin.unsafe(`alter database ${draft} rename to ${template}`)
  }
  await admin`select pg_advisory_unlock(1)`
  return template
}

let citus: Promise<CitusCluster> | undefined

/** With CITUS_BIN, the databases of the tests are distributed over two worker nodes. */
function getCitus(): Promise<CitusCluster> {
  return (citus ??= startCitus({ workers: 2 }))
}

/** Says whether the cluster outlives the tests of a file. */
export async function isClusterShared(): Promise<boolean> {
  return !process.env['CITUS_BIN'] && (await getCluster()).postgres.how === 'attached'
}

/** Returns a fresh database at the current schema; it is dropped at the end of the file. */
export async function cloneDatabase(): Promise<string> {
  if (process.env['CITUS_BIN']) return (await getCitus()).createDatabase()
  const { postgres, admin, template } = await getCluster()
  const name = newName()
  await admin.unsafe(
    `create database ${name} template ${template} owner ${SERVER_ROLE} strategy file_copy`,
  )
  made.push(name)
  return toUrl(postgres, name)
}

/** Returns a copy of a database; it is dropped at the end of the run. */
export async function copyDatabase(url: string): Promise<string> {
  const { postgres, admin } = await getCluster()
  const name = newName()
  made.push(name)
  await admin.unsafe('set statement_timeout = 0')
  await admin.unsafe(
    `create database ${name} template ${new URL(url).pathname.slice(1)} owner ${SERVER_ROLE} strategy file_copy`,
  )
  return toUrl(postgres, name)
}

/** Drops a database of this run before its end. */
export async function dropDatabase(url: string): Promise<void> {
  const { admin } = await getCluster()
  const name = new URL(url).pathname.slice(1)
  await admin.unsafe(`drop database if exists ${name} with (force)`)
  made.splice(made.indexOf(name), 1)
}

/** Returns an empty database without a schema. */
export async function createEmptyDatabase(): Promise<string> {
  const { postgres, admin } = await getCluster()
  const name = newName()
  await admin.unsafe(`create database ${name} owner ${SERVER_ROLE}`)
  made.push(name)
  return toUrl(postgres, name)
}

/** Drops the databases of a test file, and stops Postgres if this process has started it. */
export async function leaveCluster(): Promise<void> {
  const using = await cluster
  if (using?.postgres.how === 'attached' && !citus) return dropMade(using.admin)
  return closeCluster()
}

/** Drops the databases, and stops Postgres unless another run uses it. */
export async function closeCluster(): Promise<void> {
  if (citus) await (await citus)[Symbol.asyncDispose]()
  citus = undefined
  if (!cluster) return
  const closing = cluster
  // A later file must not get the Postgres that stops.
  cluster = undefined
  const { postgres, admin } = await closing
  await dropMade(admin)
  await admin.end({ timeout: 5 })
  await postgres.stop()
}

async function dropMade(admin: Sql): Promise<void> {
  for (const name of made.splice(0)) {
    await admin.unsafe(`drop database if exists ${name} with (force)`)
  }
}

/** Returns the superuser's URL of a database. */
export async function toSuperuserUrl(databaseUrl: string): Promise<string> {
  const { postgres } = await getCluster()
  return withDatabase(postgres.superuserUrl, new URL(databaseUrl).pathname)
}

const toUrl = (postgres: Cluster, database: string) => withDatabase(postgres.url, database)

/** Returns the URL of another database of the same Postgres. */
export function withDatabase(databaseUrl: string, name: string): string {
  const url = new URL(databaseUrl)
  url.pathname = name
  return url.href
}

/** Returns the URL of the same database, whose tables are in a schema of this name. */
export function withSchema(databaseUrl: string, schema: string): string {
  // URLSearchParams writes a space as +, which Postgres reads as it is.
  const separator = databaseUrl.includes('?') ? '&' : '?'
  return `${databaseUrl}${separator}schema=${encodeURIComponent(schema)}`
}

/** Returns a copy of a database without connections, with the file of a relation damaged. */
export async function copyDamaged(
  url: string,
  relation: string,
  damage: (file: string) => void,
): Promise<string> {
  const copy = await copyDatabase(url)
  const { admin } = await getCluster()
  const source = connect(await toSuperuserUrl(url), { name: 'test damage', max: 1 })
  const [{ path }] = await source<[{ path: string }]>`
    select pg_relation_filepath(${relation}::text::regclass) as path
  `
  await source.end({ timeout: 1 })
  const [{ folder }] = await admin<[{ folder: string }]>`
    select current_setting('data_directory') || '/base/' || oid || '/' as folder
    from pg_database where datname = ${new URL(copy).pathname.slice(1)}
  `
  damage(join(folder, basename(path)))
  return copy
}
