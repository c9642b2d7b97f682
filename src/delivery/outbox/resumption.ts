import { toReason } from '../../base/errors.ts'
import { logger } from '../../base/log.ts'
import { createWakeUpSignal } from '../../base/wake-up.ts'
import type { Pool } from '../../database/pool.ts'
import type { KindName } from './kind.ts'

const POLL_MS = 1_000
/** The deliveries of one transaction. */
const MAX_ROWS = 1_000

const log = logger('outbox')

interface ResumptionOptions {
  pool: Pool
  /** Called when deliveries of a target have become due. */
  onResumed(kind: KindName, targetId: string): void
}

/**
 * Makes the waiting deliveries of resumed targets due, in short transactions. After a crash another
 * process continues.
 */
export function startResumption({ pool, onResumed }: ResumptionOptions): { stop(): Promise<void> } {
  const wakeUp = createWakeUpSignal()
  let isStopped = false

  async function run(): Promise<void> {
    while (!isStopped) {
      try {
        if (await resume()) continue
      } catch (error) {
        log.warning('Deliveries could not be resumed, and are tried again: {reason}', {
          reason: toReason(error),
        })
      }
      wakeUp.sendIn(POLL_MS)
      await wakeUp.sleep()
    }
  }

  /** Resumes deliveries of one target. Returns false if no target is to be resumed. */
  async function resume(): Promise<boolean> {
    const [row] = await pool.run(
      sql => sql<{ kind: KindName; targetId: string }[]>`
        select kind, target_id as "targetId" from resume_deliveries(${MAX_ROWS})
      `,
    )
    if (row) onResumed(row.kind, row.targetId)
    return row !== undefined
  }

  const running = run()
  return {
    async stop() {
      isStopped = true
      wakeUp.send()
      await running
    },
  }
}
