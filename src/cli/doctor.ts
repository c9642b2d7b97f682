import { hasOwner } from '../accounts/owners.ts'
import { openDatabase } from '../db/database.ts'
import { listMigrations } from '../db/migrate.ts'
import { connect, type Sql } from '../db/sql.ts'
import { toReason } from '../errors.ts'
import { configureLog } from '../log.ts'
import { findProblem, type SecretSource } from '../secrets/open-secrets.ts'
import { command } from './command.ts'
import { readConfig } from './environment.ts'

const MAX_SKEW_S = 5

interface Finding {
  check: string
  state: 'ok' | 'warning' | 'failed'
  message: string
}

export const doctor = command({
  name: 'doctor',
  description:
    'Check the installation: each line says ok, warning or failed, and what to do. Exit code 1 on failed.',
  examples: ['tidings doctor', 'tidings doctor --json'],
  args: {},
  async run() {
    const findings = await examine()
    return {
      json: findings,
      text: findings
        .map(({ check, state, message }) => `${state.padEnd(8)} ${check}: ${message}`)
        .join('\n'),
      hasFailed: findings.some(({ state }) => state === 'failed'),
    }
  },
})

async function examine(): Promise<Finding[]> {
  configureLog('error', line => process.stderr.write(line))
  const config = readConfig()
  const findings: Finding[] = [
    { check: 'configuration', state: 'ok', message: `serves on ${config.host}:${config.port}` },
    checkBaseUrl(config.baseUrl),
  ]
  try {
    const database = await openDatabase(config)
    const sql = connect(database.url, { name: 'doctor', max: 1 })
    try {
      findings.push(...(await checkDatabase(sql, database.kind)))
      findings.push(...(await checkSecret(sql, { ...config, dataDir: database.dataDir })))
    } finally {
      await sql.end({ timeout: 1 })
      await database.close()
    }
  } catch (error) {
    findings.push({ check: 'database', state: 'failed', message: toReason(error) })
  }
  return findings
}

function checkBaseUrl(baseUrl: string | undefined): Finding {
  const check = 'BASE_URL'
  if (baseUrl === undefined) {
    return {
      check,
      state: 'ok',
      message: 'not set: fine on this machine, set it before others use the server',
    }
  }
  const { protocol, hostname } = new URL(baseUrl)
  const isLocal = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
  return protocol === 'https:' || isLocal
    ? { check, state: 'ok', message: baseUrl }
    : {
        check,
        state: 'warning',
        message: `${baseUrl} is not encrypted, so passwords and the cookie of who is signed in can be read on the way: put a proxy with https in front`,
      }
}

async function checkDatabase(sql: Sql, kind: string): Promise<Finding[]> {
  const [row] = await sql<[{ version: string; skew: number; connections: number }]>`
    select current_setting('server_version') as version,
      extract(epoch from clock_timestamp() - ${new Date()})::float8 as skew,
      current_setting('max_connections')::int as connections
  `
  const migrations = await listMigrations(sql)
  const pending = migrations.filter(({ isApplied }) => !isApplied).map(({ name }) => name)
  const skew = Math.abs(row.skew)
  const owner = pending.includes('0006_people') ? [] : [await checkOwner(sql)]
  return [
    { check: 'database', state: 'ok', message: `${kind} PostgreSQL ${row.version}` },
    pending.length === 0
      ? { check: 'migrations', state: 'ok', message: 'up to date' }
      : {
          check: 'migrations',
          state: 'warning',
          message: `${pending.join(', ')} will be applied at the next start`,
        },
    skew <= MAX_SKEW_S
      ? { check: 'clock', state: 'ok', message: 'agrees with the database' }
      : {
          check: 'clock',
          state: 'failed',
          message: `is ${skew.toFixed(0)} s off the database's: set both by NTP`,
        },
    ...owner,
  ]
}

/** Whether what the database keeps secret can be opened; nothing of it, before its migration. */
async function checkSecret(sql: Sql, source: SecretSource): Promise<Finding[]> {
  const check = 'APP_SECRET'
  const [{ is_there }] = await sql<[{ is_there: boolean }]>`
    select to_regclass('sealed_canary') is not null as is_there
  `
  if (!is_there) return []
  const problem = await findProblem(sql, source)
  return [
    problem === undefined
      ? { check, state: 'ok', message: "opens the database's secrets" }
      : { check, state: 'failed', message: problem },
  ]
}

async function checkOwner(sql: Sql): Promise<Finding> {
  const check = 'owner'
  return (await hasOwner(sql))
    ? { check, state: 'ok', message: 'somebody can sign in' }
    : {
        check,
        state: 'warning',
        message:
          'nobody can sign in yet: open the setup link that the server prints at its start, or run `tidings owner create`',
      }
}
