import type { Delivery } from '../../../outbox/schema.ts'
import { Icon } from '../components/icon.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { ErrorNotice } from '../components/standalone-page.tsx'
import { showToast } from '../components/toast.tsx'
import { toWebhookPath } from '../paths.ts'
import { toDuration } from '../time.ts'
import { replay, useDeliveries } from './use-deliveries.ts'

const STATES: Record<Delivery['state'], string> = {
  pending: 'Waiting',
  delivered: 'Sent',
  failed: 'Failed',
  dead: 'Given up',
  cancelled: 'Called off',
  withheld: 'Not sent',
}
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

/** Everybody who was told of an event, what came of it, and who was not told, and why. */
export function Deliveries({ project, event, mayReplay }: DeliveriesOptions) {
  const { data, failure, read, readMore } = useDeliveries(project, event)
  const isWaiting =
    data !== undefined &&
    (!data.isDispatched || data.items.some(({ state }) => state === 'pending'))

  async function send(delivery: Delivery) {
    const result = await replay(project, delivery)
    showToast({ message: result.ok ? 'It is sent again.' : result.failure.message })
    read()
  }

  return (
    <section class="metadata" aria-labelledby="panel-deliveries">
      <div class="metadata-top">
        <h3 id="panel-deliveries">Deliveries</h3>
        {isWaiting && (
          <button type="button" class="quiet-button" onClick={read}>
            Look again
          </button>
        )}
      </div>
      {failure && <ErrorNotice failure={failure} onRetry={read} />}
      {data && data.items.length === 0 && (
        <p class="note">
          {data.isDispatched ? 'No record of any is kept.' : 'Nobody has been told yet.'}
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
              <button type="button" class="quiet-button" onClick={() => void send(one)}>
                Send again
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
    return <p>{kind === 'push' ? 'A device that is gone' : 'A webhook that is gone'}</p>
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

/** When, how fast, in how many attempts; and what the last one met, or why there was none. */
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
            {attempts} attempts
          </>
        )}
        {state === 'pending' && nextAttemptAt !== null && attempts > 0 && (
          <>
            {attempts > 1 && ' · '}next one <Timestamp atMs={Date.parse(nextAttemptAt)} hasDate />
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

/** A push service accepts what it passes on later; a webhook has it. */
function toState({ kind, state, attempts }: Delivery): string {
  if (state === 'delivered' && kind === 'push') return 'Accepted'
  return state === 'pending' && attempts > 0 ? 'Trying again' : STATES[state]
}
