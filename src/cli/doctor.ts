import type { Config } from '../base/config.ts'
import { locateDatabase, type Database } from '../database/embedded/database.ts'
import { connect } from '../database/sql.ts'
import { toReason } from '../base/errors.ts'
import { configureLog } from '../base/log.ts'
import { command } from './command.ts'
import { checkAddress } from './doctor/address.ts'
import {
  checkDatabase,
  checkListener,
  checkPush,
  checkQueue,
  checkSearchIndex,
  checkSecret,
} from './doctor/database.ts'
import { checkBackups, checkExport } from './doctor/copies.ts'
import { checkTables } from './doctor/tables.ts'
import { checkFiles, checkZones } from './doctor/files.ts'
import { checkHosts, checkStandbys } from './doctor/standbys.ts'
import { failed, ok, warning, type Finding } from './doctor/finding.ts'
import {
  DATA_DIR,
  ensureInstalled,
  explainError,
  findInstallation,
  withOpenDatabase,
  type Place,
} from './environment.ts'

export const doctor = command({
  name: 'doctor',
  description:
    'Check the installation. Each line is ok, warning or failed, and says what to do. Exits with 1 if a check failed.',
  examples: ['tidings doctor', 'tidings doctor --deep', 'tidings doctor --json'],
  args: {
    ...DATA_DIR,
    deep: {
      type: 'boolean',
      default: false,
      description: 'Read all tables and indexes, too, and compare them',
    },
    'trust-clock': {
      type: 'boolean',
      default: false,
      description: 'Confirm the clock after a jump, so that retention goes on at once',
    },
  },
  async run({ deep, 'trust-clock': trustsClock, ...place }) {
    const findings = await runChecks(place, { isDeep: deep, trustsClock })
    return {
      json: findings,
      text: findings
        .map(({ check, state, message }) => `${state.padEnd(8)} ${check}: ${message}`)
        .join('\n'),
      hasFailed: findings.some(({ state }) => state === 'failed'),
    }
  },
})

async function runChecks(
  place: Place,
  { isDeep, trustsClock }: { isDeep: boolean; trustsClock: boolean },
): Promise<Finding[]> {
  const settings = findInstallation(place)
  const { config, file, warnings } = settings
  configureLog('error', process.stderr, config.logFormat)
  const findings = [
    ok(
      'configuration',
      `Valid${file === undefined ? '' : `, with ${file}`}. HOST is ${config.host}, PORT is ${config.port}.`,
    ),
    ...warnings.map(text => warning('settings file', text)),
    ...(await checkAddress(config)),
    checkZones(),
    // Before the database, which may not start when the disk is full.
    ...checkFiles(locateDatabase(config)),
  ]
  try {
    ensureInstalled(settings)
    const found = await withOpenDatabase(config, async database => [
      ...(await checkInstallation(config, database, trustsClock)),
      ...(isDeep ? await checkTables(database) : []),
    ])
    findings.push(...found)
  } catch (error) {
    findings.push(failed('database', toReason(explainError(error))))
  }
  return findings
}

async function checkInstallation(
  config: Config,
  database: Database,
  trustsClock: boolean,
): Promise<Finding[]> {
  const sql = connect(database.sessionUrl, { name: 'doctor', max: 2 })
  try {
    const { findings, isCurrent } = await checkDatabase(sql, {
      kind: database.kind,
      port: config.port,
      trustsClock,
    })
    if (database.kind === 'external') {
      findings.push(...(await checkHosts(database.sessionUrl)))
      findings.push(...(await checkStandbys(sql, database.sessionUrl)))
    }
    findings.push(await checkListener(sql, config.databaseDirectUrl ?? database.url))
    findings.push(...(await checkSecret(sql, { ...config, dataDir: database.dataDir })))
    if (isCurrent) {
      findings.push(...(await checkQueue(sql)), await checkSearchIndex(sql))
      findings.push(...(await checkPush(sql, config)), ...(await checkBackups(sql, config)))
      findings.push(...(await checkExport(sql, config)))
    }
    return findings
  } finally {
    await sql.end({ timeout: 1 })
  }
}
