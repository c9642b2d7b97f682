import { createRefusals } from '../access/audit/refusals.ts'
import { createAdmission } from '../access/keys/count-requests.ts'
import type { Config } from '../base/config.ts'
import type { Secrets } from '../database/secrets/secrets.ts'
import { createInFlightRequests } from '../http/limits/idempotency.ts'
import { createQuotas, storeChannelQuota } from '../http/limits/quotas.ts'
import { createAppender } from '../log/events/append.ts'
import { startIndexer } from '../log/events/indexer.ts'
import { toErasedFile } from '../log/identities/erased-file.ts'
import { ensureErasureKey } from '../log/identities/erased-users.ts'
import { createEraser } from '../log/identities/erasure.ts'
import { createIdentityWriter } from '../log/identities/identify.ts'
import { startUserIndexer } from '../log/identities/user-indexer.ts'
import type { CleanupStack } from './cleanup-stack.ts'
import { registerWorkGauges } from './gauges.ts'
import type { OpenPools } from './pools.ts'

export interface WriterOptions {
  /** How long a request waits for the end of an erasure. */
  erasureWaitMs?: number
  /** How long a request waits for another one with its Idempotency-Key. */
  keyWaitMs?: number
}

interface Source {
  config: Config
  pool: OpenPools
  dataDir: string
  secrets: Secrets
  onAppended(projectIds: ReadonlySet<string>): void
}

/** Starts what writes events and users, and what counts, indexes and erases them. */
export async function startWriters(
  { config, pool, dataDir, secrets, onAppended }: Source,
  options: WriterOptions,
  cleanup: CleanupStack,
) {
  // A start that fails here begins anew, so nothing may run yet.
  await pool.background.run(sql => storeChannelQuota(sql, config.quotas.channels))
  const erasureKey = await pool.users.run(sql => ensureErasureKey(sql, secrets))
  const indexer = startIndexer({ pool: pool.index })
  cleanup.push('the indexer', () => indexer.stop())
  const inflight = createInFlightRequests(options.keyWaitMs)
  const admission = createAdmission({ pool: pool.admissions, background: pool.background })
  const appender = createAppender({
    pool: pool.appends,
    stepPool: pool.users,
    inflight,
    isDistributed: pool.isSpread,
    maxChannels: config.quotas.channels,
    onAppended(projectIds) {
      onAppended(projectIds)
      indexer.wake(projectIds)
    },
  })
  const userIndexer = startUserIndexer(pool.users)
  const quotas = createQuotas({ limits: config.quotas, pool: pool.background })
  const identityWriter = createIdentityWriter({
    pool: pool.identifies,
    inflight,
    quotas,
    onIdentified: userIndexer.wake,
  })
  const eraser = createEraser({
    pool: pool.users,
    key: erasureKey,
    file: toErasedFile(dataDir),
    waitMs: options.erasureWaitMs,
  })
  const refusals = createRefusals(pool.background)
  cleanup.push('writes', async () => {
    await Promise.all([
      appender.drain(),
      identityWriter.drain(),
      admission.stop(),
      quotas.stop(),
      refusals.stop(),
      userIndexer.stop(),
      eraser.stop(),
    ])
  })
  registerWorkGauges({ admission, appender, identityWriter })
  return { admission, appender, eraser, identityWriter, inflight, quotas, refusals }
}
