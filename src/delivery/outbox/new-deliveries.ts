import type { ClaimedDelivery, DispatchRequest, Dispatched } from './kind.ts'

/** The row of a function such as `dispatch_webhooks`. */
export interface DispatchedRow {
  ranges: readonly {
    project_id: string
    from_seq: number
    to_seq: number
    has_targets: boolean
    is_whole: boolean
    lag_ms: number
  }[]
  count: string
  leased?:
    | readonly Pick<ClaimedDelivery, 'id' | 'projectId' | 'eventId' | 'targetId' | 'ageMs'>[]
    | null
}

/** Returns the result of a dispatch from its row. */
export function toDispatched(
  { ranges, count, leased }: DispatchedRow,
  { lease }: DispatchRequest,
): Dispatched {
  const token = lease?.token ?? ''
  const fresh = { token, claimCount: 1, attempts: 0, waitedMs: 0, isGone: false, hiddenMs: null }
  return {
    ranges: ranges.map(range => ({
      projectId: range.project_id,
      fromSeq: range.from_seq,
      toSeq: range.to_seq,
      hasTargets: range.has_targets,
      isWhole: range.is_whole,
      lagMs: range.lag_ms,
    })),
    count: Number(count),
    leased: (leased ?? []).map(row => ({ ...fresh, ...row })),
  }
}
