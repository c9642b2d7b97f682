import type { Delivery } from '../../../delivery/outbox/schema.ts'
import { Icon } from '../components/icon.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { ErrorNotice } from '../components/standalone-page.tsx'
import { showToast } from '../components/toast.tsx'
import { toWebhookPath } from '../paths.ts'
import { toDuration } from '../time.ts'
import { replayDelivery } from '../webhooks/api.ts'
import { useDeliveries } from './use-deliveries.ts'

const STATES = {
  pending: 'Pending',
  delivered: 'Delivered',
  failed: 'Failed',
  dead: 'Given up',
  cancelled: 'Cancelled',
  withheld: 'Not sent',
} as const satisfies Record<Delivery['state'], string>
const BADGES: Partial<Record<Delivery['state'], string>> = {
  delivered: 'badge-good',
  failed: 'badge-bad',
  dead: 'badge-bad',
}

interface DeliveriesOptions {
  project: string
  event: string
  mayReplay: boolean
}

/** The deliveries of an event: their targets, their outcomes, and why some were not sent. */
export function Deliveries({ project, event, mayReplay }: DeliveriesOptions) {
  const { data, failure, read, readMore } = useDeliveries(project, event)
  const isWaiting =
    data !== undefined &&
    (!data.isDispatched || data.items.some(({ state }) => state === 'pending'))

  async function resend(delivery: Delivery) {
    const result = await replayDelivery(project, delivery.id)
    showToast({ message: result.ok ? 'Queued for resend.' : result.failure.message })
    read()
  }

  return (
    <section class="metadata" aria-labelledby="panel-deliveries">
      <div class="metadata-top">
        <h3 id="panel-deliveries">Deliveries</h3>
        {isWaiting && (
          <button type="button" class="quiet-button" onClick={read}>
            Refresh
          </button>
        )}
      </div>
      {failure && <ErrorNotice failure={failure} onRetry={read} />}
      {data && data.items.length === 0 && (
        <p class="note">
          {data.isDispatched
            ? 'No deliveries are recorded for this event.'
            : 'Deliveries are being prepared.'}
        </p>
      )}
      <ul class="items" aria-busy={data === undefined && !failure}>
        {data?.items.map(one => (
          <li key={`${one.kind} ${one.id} ${one.state}`}>
            <Icon name={one.kind === 'push' ? 'notifications' : 'webhooks'} />
            <div class="item-main">
              <Target project={project} delivery={one} />
              <Outcome delivery={one} />
            </div>
            <span class={`badge ${BADGES[one.state] ?? ''}`}>{toState(one)}</span>
            {one.state === 'dead' && mayReplay && (
              <button type="button" class="quiet-button" onClick={() => void resend(one)}>
                Resend
              </button>
            )}
          </li>
        ))}
      </ul>
      {data && data.nextCursor !== null && (
        <button type="button" class="quiet-button" onClick={readMore}>
          Show more
        </button>
      )}
    </section>
  )
}

function Target({ project, delivery: { kind, target } }: { project: string; delivery: Delivery }) {
  if (target === null) return <p>{kind === 'push' ? 'Notifications' : 'Webhooks'}</p>
  if (target.name === null) {
    return <p>{kind === 'push' ? 'A removed device' : 'A deleted webhook'}</p>
  }
  return (
    <p>
      {kind === 'push' ? (
        <bdi>{target.name}</bdi>
      ) : (
        <a class="text-link" href={toWebhookPath(project, target.id)}>
          <bdi>{target.name}</bdi>
        </a>
      )}
    </p>
  )
}

/** The time, latency and number of attempts, and the reason of a failure. */
function Outcome({
  delivery: { at, attempts, latencyMs, reason, nextAttemptAt, state },
}: {
  delivery: Delivery
}) {
  return (
    <>
      <p class="item-details">
        {at !== null && <Timestamp atMs={Date.parse(at)} hasDate />}
        {latencyMs !== null && <> · after {toDuration(latencyMs)}</>}
        {attempts > 1 && (
          <>
            {at !== null && ' · '}
            {attempts.toLocaleString()} attempts
          </>
        )}
        {state === 'pending' && nextAttemptAt !== null && attempts > 0 && (
          <>
            {attempts > 1 && ' · '}
            next attempt <Timestamp atMs={Date.parse(nextAttemptAt)} hasDate />
          </>
        )}
      </p>
      {reason !== null && (
        <p class="item-details">
          <bdi>{reason}</bdi>
        </p>
      )}
    </>
  )
}

/** A push service only accepts a message and forwards it later. */
function toState({ kind, state, attempts }: Delivery): string {
  if (state === 'delivered' && kind === 'push') return 'Accepted'
  return state === 'pending' && attempts > 0 ? 'Retrying' : STATES[state]
}
