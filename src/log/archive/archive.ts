import { Fault } from '../../base/errors.ts'
import { pause } from '../../base/functions.ts'
import type { Sql } from '../../database/sql.ts'
import type { ErasureKey } from '../identities/erased-users.ts'
import type { ArchiveStore } from './store.ts'

/** The context of a run. */
export interface Archive {
  sql: Sql
  store: ArchiveStore
  /** Undefined before the first start of a server. */
  erasureKey: ErasureKey | undefined
  /** Months that ended this many days ago are archived. */
  afterDays: number
  /** True if the run takes over the archive of another installation. */
  isAdopting?: boolean | undefined
  /** Stops the run at the next step. */
  signal?: AbortSignal | undefined
}

/** The events of one month of one project that are due. Ids are uuids. */
export interface DueMonth {
  organizationId: string
  projectId: string
  /** Such as `2026-05`, in UTC. */
  month: string
  /** True if all events of the month are due. False if only those are that channels do not keep. */
  isWhole: boolean
}

/**
 * Waits after a step that began at `startedMs`, for as long as it took times `factor`. Leaves the
 * disk and the log of the project to others. Throws when the run has to stop.
 */
export async function rest({ signal }: Archive, startedMs: number, factor = 1): Promise<void> {
  await pause((performance.now() - startedMs) * factor, signal)
  if (signal?.aborted)
    throw new Fault('unavailable', 'The run was stopped. The next one continues.')
}
