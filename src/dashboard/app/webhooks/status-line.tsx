import { Timestamp } from '../components/timestamp.tsx'
import type { Webhook } from '../../../delivery/webhooks/webhook-schema.ts'
import { toStatus } from './status.ts'

/** The status of a webhook as a badge. */
export function StatusBadge({ webhook }: { webhook: Webhook }) {
  const { word, tone } = toStatus(webhook)
  return <span class={`badge badge-${tone}`}>{word}</span>
}

/** The status of a webhook in one or two sentences, if there is more to say. */
export function StatusLine({ webhook }: { webhook: Webhook }) {
  const { sentence, backlogFull } = toStatus(webhook)
  return (
    <>
      {[sentence, backlogFull].map(
        line =>
          line && (
            <p class="item-details" key={line.before}>
              {line.before}{' '}
              {line.at !== null && <Timestamp atMs={Date.parse(line.at)} hasDate isClockTime />}
              {line.reason && (
                <>
                  : <bdi>{line.reason}</bdi>
                </>
              )}
              {line.after}
            </p>
          ),
      )}
    </>
  )
}
