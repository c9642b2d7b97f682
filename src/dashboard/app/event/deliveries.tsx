import { Details } from '../components/item.tsx'
import { useRef } from 'preact/hooks'
import type { Delivery } from '../../../delivery/outbox/delivery-schema.ts'
import { Icon } from '../components/icon.tsx'
import { Moment } from '../components/timestamp.tsx'
import { PagedList, usePages } from '../components/pages.tsx'
import { showResult } from '../components/toast.tsx'
import { PATHS, toWebhookPath } from '../paths.ts'
import { toDuration } from '../time.ts'
import { request } from '../request.ts'
import { isOffHere } from '../push/seen.ts'
import type { Data } from '../routes.ts'
import { QuietButton } from '../components/buttons.tsx'

const ROUTE = 'GET /api/projects/:projectId/events/:eventId/deliveries'

const PAGE_SIZE = 100
const MIN_REFRESH_MS = 1_000
const MAX_REFRESH_MS = 30_000

const STATES = {
  pending: 'Pending',
  delivered: 'Delivered',
  failed: 'Failed',
  dead: 'Given up',
  cancelled: 'Cancelled',
  withheld: 'Not sent',
} as const satisfies Record<Delivery['state'], string>
/** The icon of a kind, and the names of all its targets and of one without a name. */
const KINDS = {
  push: { icon: 'notifications', all: 'Notifications', gone: 'A removed device' },
  webhook: { icon: 'webhooks', all: 'Webhooks', gone: 'A deleted webhook' },
  timer: { icon: 'open', all: 'Members', gone: 'A stage or repetition' },
} as const satisfies Record<Delivery['kind'], object>
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
export function DeliveryList({ project, event, mayReplay }: DeliveriesOptions) {
  /** When the outcomes were last asked for by hand. They change most right after that. */
  const askedMs = useRef(Date.now())
  const place = { projectId: project, eventId: event, limit: PAGE_SIZE }
  const pages = usePages(ROUTE, place, {
    everyMs: page =>
      isSettled(page)
        ? undefined
        : Math.min(Math.max(Date.now() - askedMs.current, MIN_REFRESH_MS), MAX_REFRESH_MS),
  })
  const { data } = pages

  function read() {
    askedMs.current = Date.now()
    void pages.refetch()
  }

  async function resend(delivery: Delivery) {
    const ref = { projectId: project, deliveryId: delivery.id }
    const replay = request('POST /api/projects/:projectId/deliveries/:deliveryId/replay', ref)
    showResult(await replay, 'Queued for resend.')
    read()
  }

  return (
    <section class="metadata" aria-labelledby="panel-deliveries">
      <div class="metadata-top">
        <h3 id="panel-deliveries">Deliveries</h3>
        {data && !isSettled(data) && <QuietButton onClick={read}>Refresh</QuietButton>}
      </div>
      <PagedList
        pages={pages}
        empty={
          <p class="note">
            {data?.isDispatched
              ? 'No deliveries are recorded for this event.'
              : 'Deliveries are being prepared.'}
          </p>
        }
      >
        {one => (
          <li key={`${one.kind} ${one.id} ${one.state}`}>
            <Icon name={KINDS[one.kind].icon} />
            <AboutDelivery project={project} delivery={one} />
            <span class={`badge ${BADGES[one.state] ?? ''}`}>{toState(one)}</span>
            {one.state === 'withheld' && /\bdevice\b/.test(one.reason ?? '') && isOffHere() && (
              <a class="text-link" href={PATHS.notifications}>
                Turn on here
              </a>
            )}
            {one.state === 'dead' && mayReplay && (
              <QuietButton onClick={() => void resend(one)}>Resend</QuietButton>
            )}
          </li>
        )}
      </PagedList>
    </section>
  )
}

interface AboutOptions {
  project: string
  delivery: Delivery
}

/** The target of a delivery, and its time, latency, attempts and the reason of a failure. */
export function AboutDelivery({ project, delivery }: AboutOptions) {
  const { at, attempts, latencyMs, reason, nextAttemptAt, state } = delivery
  return (
    <div class="item-main">
      <Target project={project} delivery={delivery} />
      <Details>
        {at !== null && <Moment at={at} />}
        {latencyMs !== null && `after ${toDuration(latencyMs)}`}
        {attempts > 1 && `${attempts.toLocaleString()} attempts`}
        {state === 'pending' && nextAttemptAt !== null && (
          <Moment word="next attempt" at={nextAttemptAt} />
        )}
      </Details>
      {reason !== null && (
        <p class="item-details">
          <bdi>{reason}</bdi>
        </p>
      )}
    </div>
  )
}

function Target({ project, delivery: { kind, target } }: AboutOptions) {
  const { all, gone } = KINDS[kind]
  if (target === null) return <p>{all}</p>
  if (target.name === null) return <p>{gone}</p>
  const name = <bdi>{target.name}</bdi>
  const path = toWebhookPath(project, target.id)
  return (
    <p>
      {kind !== 'webhook' ? (
        name
      ) : (
        <a class="text-link" href={path}>
          {name}
        </a>
      )}
    </p>
  )
}

/** A push service only accepts a message and forwards it later. */
function toState({ kind, state, attempts }: Delivery): string {
  if (state === 'delivered' && kind === 'push') return 'Accepted'
  return state === 'pending' && attempts > 0 ? 'Retrying' : STATES[state]
}

function isSettled({ items, isDispatched }: Data<typeof ROUTE>): boolean {
  return isDispatched && items.every(({ state }) => state !== 'pending')
}
