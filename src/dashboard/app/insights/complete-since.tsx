import { toDateTime } from '../time.ts'

/** Says since when counts are complete; nothing if all of the period was counted. */
export function CompleteSince({ at }: { at: string | null }) {
  if (at === null) return null
  return (
    <p class="hint">
      Complete since {toDateTime(Date.parse(at))}. This search is too broad to count the whole
      period.
    </p>
  )
}
