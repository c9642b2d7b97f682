import { useState } from 'preact/hooks'
import { ActionButton } from '../components/action-button.tsx'
import { PagedList } from '../components/paged-list.tsx'
import { Moment } from '../components/timestamp.tsx'
import { showToast } from '../components/toast.tsx'
import { toPlural } from '../plural.ts'
import { toEventPath, toWebhookPath } from '../paths.ts'
import { usePages } from '../components/use-pages.ts'
import type { Delivery } from '../../../delivery/outbox/delivery-schema.ts'
import { request } from '../request.ts'
import { Section } from '../components/section.tsx'

const STATES = ['dead', 'pending'] as const
const STATE_NAMES = { dead: 'Given up', pending: 'Pending' }

/** The dead and pending deliveries of a project, to webhooks and devices. */
export function Deliveries({ project }: { project: string }) {
  const [state, setState] = useState<(typeof STATES)[number]>('dead')
  const pages = usePages('GET /api/projects/:projectId/deliveries', { projectId: project, state })
  return (
    <Section id="deliveries" title="Not delivered">
      <p class="page-lead">
        Failed webhook messages are retried for three days, and notifications for one day. Then they
        are given up.
      </p>
      <div class="segmented" role="group" aria-label="State">
        {STATES.map(one => (
          <button
            key={one}
            type="button"
            aria-pressed={state === one}
            onClick={() => setState(one)}
          >
            {STATE_NAMES[one]}
          </button>
        ))}
      </div>
      <PagedList
        pages={pages}
        empty={
          <p class="note">
            {state === 'dead' ? 'No deliveries were given up.' : 'No deliveries are pending.'}
          </p>
        }
      >
        {delivery => (
          <li key={`${delivery.id} ${delivery.state}`}>
            <About project={project} delivery={delivery} />
            <div class="item-actions">
              {delivery.eventId !== null && (
                <a class="action-link" href={toEventPath(project, delivery.eventId)}>
                  Open event
                </a>
              )}
              {state === 'dead' && (
                <ActionButton
                  action="Retry"
                  send={() =>
                    request('POST /api/projects/:projectId/deliveries/:deliveryId/replay', {
                      projectId: project,
                      deliveryId: delivery.id,
                    })
                  }
                  onDone={() => {
                    showToast('Queued for resend.')
                    void pages.refetch()
                  }}
                />
              )}
            </div>
          </li>
        )}
      </PagedList>
    </Section>
  )
}

function About({ project, delivery }: { project: string; delivery: Delivery }) {
  const { kind, target, attempts, reason, at, nextAttemptAt } = delivery
  const name = target?.name ?? (kind === 'webhook' ? 'A deleted webhook' : 'A device')
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
        {toPlural(attempts, 'attempt')}
        {at !== null && (
          <>
            {' '}
            · last <Moment at={at} />
          </>
        )}
        {nextAttemptAt !== null && (
          <>
            {' '}
            · next <Moment at={nextAttemptAt} />
          </>
        )}
      </p>
    </div>
  )
}
