import type { Webhook } from '../../../delivery/webhooks/webhook-schema.ts'
import { Timestamp } from '../components/timestamp.tsx'
import { toStatus, type WebhookStatus } from './status.ts'

/** The status of a webhook as a badge. */
export function StatusBadge({ webhook }: { webhook: Webhook }) {
  const { word, tone } = toStatus(webhook)
  return <span class={`badge badge-${tone}`}>{word}</span>
}

/** The status of a webhook in one or two sentences, if there is more to say. */
export function StatusLine({ webhook }: { webhook: Webhook }) {
  const full = webhook.backlogFullAt ?? null
  return (
    <>
      <Sentence sentence={toStatus(webhook).sentence} />
      {full !== null && (
        <Sentence
          sentence={[
            'Queue full since',
            full,
            '. New events are not queued. Recover them once the queue has room.',
          ]}
        />
      )}
    </>
  )
}

function Sentence({ sentence }: { sentence: WebhookStatus['sentence'] }) {
  if (!sentence) return null
  const [before, at, after] = sentence
  return (
    <p class="item-details">
      {before} {at !== null && <Timestamp atMs={Date.parse(at)} hasDate isClockTime />}
      <bdi>{after}</bdi>
    </p>
  )
}
