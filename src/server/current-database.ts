import { nameRemovedTerms } from '../log/views/removed-terms.ts'
import { replaceStoredProviders } from '../access/openid/stored-providers.ts'
import { storePasswordSwitch } from '../access/sign-in/credentials.ts'
import type { Config } from '../base/config.ts'
import { findFreePort } from '../base/listener.ts'
import { logger } from '../base/log.ts'
import { openDatabase, type Database } from '../database/embedded/database.ts'
import { migrate } from '../database/migrate.ts'
import { waitUntilReachable } from '../database/reachable.ts'
import { connect } from '../database/sql.ts'
import type { CleanupStack } from './cleanup-stack.ts'

const log = logger('server')
/** The embedded Postgres stops last, and takes as long as a checkpoint. */
const CLOSE_MS = 15_000
/** The interval of log lines while migrations run. */
const REMIND_MS = 30_000

/**
 * Opens the database, waits until it responds, and applies the pending migrations and the settings
 * that it stores. Throws before that when a port is taken, so that a server that was started by
 * mistake changes nothing.
 */
export async function openCurrentDatabase(
  config: Config,
  cleanup: CleanupStack,
  {
    signal,
    isWorker = false,
  }: { signal?: AbortSignal | undefined; isWorker?: boolean | undefined },
): Promise<Database> {
  // The workers share a port that their parent has checked.
  if (!isWorker) await checkPorts(config)
  const opening = openDatabase(config, { allowsUpgrade: true, signal })
  const close = () =>
    opening.then(
      database => database.close(),
      () => {},
    )
  cleanup.push('the database', close, CLOSE_MS)
  const database = await opening
  signal?.throwIfAborted()
  await waitUntilReachable(database.url, signal)
  const reminder = setInterval(
    () => log.info('Migrations run, or wait for a transaction or for another program'),
    REMIND_MS,
  )
  await migrate(database.sessionUrl).finally(() => clearInterval(reminder))
  if (!isWorker) await applySettings(config, database)
  signal?.throwIfAborted()
  return database
}

/** Stores the switch of passwords, and replaces or names what earlier versions have stored. */
async function applySettings(config: Config, database: Database): Promise<void> {
  const sql = connect(database.url, { name: 'sign-in', max: 1 })
  try {
    await sql.begin(async tx => {
      await storePasswordSwitch(tx, config.arePasswordsOff)
      await replaceStoredProviders(tx, config, { ...config, dataDir: database.dataDir })
      await nameRemovedTerms(tx)
    })
  } finally {
    await sql.end({ timeout: 1 })
  }
}

/** Throws when another program listens on a configured port. */
async function checkPorts(config: Config): Promise<void> {
  const { host, port, metricsHost, metricsPort, workers } = config
  if (port !== 0) await findFreePort({ host, port })
  if (!metricsPort) return
  for (let nth = 0; nth < workers; nth++) {
    await findFreePort({
      ...{ host: metricsHost, port: metricsPort + nth },
      ...({ hostSetting: 'METRICS_HOST', portSetting: 'METRICS_PORT' } as const),
    })
  }
}
