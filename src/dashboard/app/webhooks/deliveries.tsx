import { useState } from 'preact/hooks'
import { ActionButton } from '../components/action-button.tsx'
import { PagedList } from '../components/paged-list.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { showToast } from '../components/toast.tsx'
import { toEventPath, toWebhookPath } from '../paths.ts'
import { usePages } from '../components/use-pages.ts'
import { readDeliveries, replayDelivery, type Delivery } from './api.ts'

const STATES = { dead: 'Given up', pending: 'Waiting' } as const

/** What a project could not deliver, or not yet: to webhooks and to people's devices. */
export function Deliveries({ project }: { project: string }) {
  const [state, setState] = useState<keyof typeof STATES>('dead')
  const pages = usePages(`${project} ${state}`, cursor => readDeliveries(project, state, cursor))
  return (
    <section class="section" aria-labelledby="deliveries">
      <h2 id="deliveries">Not delivered</h2>
      <p class="page-lead">
        What fails is tried again for three days, a notification for one, and is then given up.
      </p>
      <div class="segmented" role="group" aria-label="Which">
        {(Object.keys(STATES) as (keyof typeof STATES)[]).map(one => (
          <button
            key={one}
            type="button"
            aria-pressed={state === one}
            onClick={() => setState(one)}
          >
            {STATES[one]}
          </button>
        ))}
      </div>
      <PagedList
        pages={pages}
        empty={
          <p class="note">
            {state === 'dead' ? 'Nothing was given up.' : 'Nothing waits: all that was due is out.'}
          </p>
        }
      >
        {delivery => (
          <li key={`${delivery.id} ${delivery.state}`}>
            <About project={project} delivery={delivery} />
            <div class="item-actions">
              <a class="action-link" href={toEventPath(project, delivery.eventId)}>
                Event
              </a>
              {state === 'dead' && (
                <ActionButton
                  action="Try again"
                  send={() => replayDelivery(project, delivery.id)}
                  onDone={() => {
                    showToast({ message: 'It is tried again, from the beginning.' })
                    pages.readAgain()
                  }}
                />
              )}
            </div>
          </li>
        )}
      </PagedList>
    </section>
  )
}

function About({ project, delivery }: { project: string; delivery: Delivery }) {
  const { kind, target, attempts, reason, at, nextAttemptAt } = delivery
  const name = target?.name ?? (kind === 'webhook' ? 'A webhook that is gone' : 'A device')
  return (
    <div class="item-main">
      <p class="item-name">
        {kind === 'webhook' && target?.name != null ? (
          <a href={toWebhookPath(project, target.id)}>
            <bdi>{name}</bdi>
          </a>
        ) : (
          <bdi>{name}</bdi>
        )}
      </p>
      <p class="item-details">
        {reason !== null && (
          <>
            <bdi>{reason}</bdi> ·{' '}
          </>
        )}
        {attempts.toLocaleString()} {attempts === 1 ? 'attempt' : 'attempts'}
        {at !== null && (
          <>
            , the last <Timestamp atMs={Date.parse(at)} hasDate />
          </>
        )}
        {nextAttemptAt !== null && (
          <>
            , the next <Timestamp atMs={Date.parse(nextAttemptAt)} hasDate />
          </>
        )}
      </p>
    </div>
  )
}
