import { useState } from 'preact/hooks'
import { AboutDelivery } from '../event/deliveries.tsx'
import { ActionButton } from '../components/action-button.tsx'
import { PagedList, usePages } from '../components/pages.tsx'
import { Segmented } from '../components/buttons.tsx'
import { showToast } from '../components/toast.tsx'
import { toEventPath } from '../paths.ts'
import { request } from '../request.ts'
import { Section } from '../components/item.tsx'

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
      <Segmented
        label="State"
        all={STATES}
        chosen={state}
        toText={one => STATE_NAMES[one]}
        onChoose={one => setState(one)}
      />
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
            <AboutDelivery project={project} delivery={delivery} />
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
