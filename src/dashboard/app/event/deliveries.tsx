import type { Delivery } from '../../../outbox/schema.ts'
import { Icon } from '../components/icon.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { ErrorNotice } from '../components/standalone-page.tsx'
import { showToast } from '../components/toast.tsx'
import { toWebhookPath } from '../paths.ts'
import { toDuration } from '../time.ts'
import { replayDelivery } from '../webhooks/api.ts'
import { useDeliveries } from './use-deliveries.ts'
import type { MessageKey } from '../locales/catalogue.ts'
import { toOwnLanguage } from '../locales/sentences.ts'
import { t, toRich } from '../locales/translate.tsx'

const STATES = {
  pending: 'event.pending',
  delivered: 'event.delivered',
  failed: 'event.failed',
  dead: 'event.dead',
  cancelled: 'event.cancelled',
  withheld: 'event.withheld',
} as const satisfies Record<Delivery['state'], MessageKey>
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
    showToast({ message: result.ok ? t('event.queuedAgain') : result.failure.message })
    read()
  }

  return (
    <section class="metadata" aria-labelledby="panel-deliveries">
      <div class="metadata-top">
        <h3 id="panel-deliveries">{t('event.deliveries')}</h3>
        {isWaiting && (
          <button type="button" class="quiet-button" onClick={read}>
            {t('event.refresh')}
          </button>
        )}
      </div>
      {failure && <ErrorNotice failure={failure} onRetry={read} />}
      {data && data.items.length === 0 && (
        <p class="note">{t(data.isDispatched ? 'event.noDeliveries' : 'event.preparing')}</p>
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
                {t('event.resend')}
              </button>
            )}
          </li>
        ))}
      </ul>
      {data && data.nextCursor !== null && (
        <button type="button" class="quiet-button" onClick={readMore}>
          {t('common.showMore')}
        </button>
      )}
    </section>
  )
}

function Target({ project, delivery: { kind, target } }: { project: string; delivery: Delivery }) {
  if (target === null)
    return <p>{t(kind === 'push' ? 'common.notifications' : 'common.webhooks')}</p>
  if (target.name === null) {
    return <p>{t(kind === 'push' ? 'event.removedDevice' : 'event.deletedWebhook')}</p>
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
        {latencyMs !== null && <> · {t('event.after', { duration: toDuration(latencyMs) })}</>}
        {attempts > 1 && (
          <>
            {at !== null && ' · '}
            {t('event.attempts', { count: attempts })}
          </>
        )}
        {state === 'pending' && nextAttemptAt !== null && attempts > 0 && (
          <>
            {attempts > 1 && ' · '}
            {toRich({
              key: 'event.nextAttempt',
              values: { time: <Timestamp atMs={Date.parse(nextAttemptAt)} hasDate /> },
            })}
          </>
        )}
      </p>
      {reason !== null && (
        <p class="item-details">
          <bdi>{toOwnLanguage(reason)}</bdi>
        </p>
      )}
    </>
  )
}

/** A push service only accepts a message and forwards it later. */
function toState({ kind, state, attempts }: Delivery): string {
  if (state === 'delivered' && kind === 'push') return t('event.accepted')
  return t(state === 'pending' && attempts > 0 ? 'event.retrying' : STATES[state])
}
