import { t } from '../locales/translate.tsx'
import { toDateTime } from '../time.ts'

/** Says since when counts are complete; nothing if all of the period was counted. */
export function CompleteSince({ at }: { at: string | null }) {
  if (at === null) return null
  return <p class="hint">{t('insights.completeSince', { time: toDateTime(Date.parse(at)) })}</p>
}
