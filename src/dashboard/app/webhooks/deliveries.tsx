import { useState } from 'preact/hooks'
import { ActionButton } from '../components/action-button.tsx'
import { PagedList } from '../components/paged-list.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { showToast } from '../components/toast.tsx'
import { toOwnLanguage } from '../locales/sentences.ts'
import { t, toRich } from '../locales/translate.tsx'
import { toEventPath, toWebhookPath } from '../paths.ts'
import { usePages } from '../components/use-pages.ts'
import { readDeliveries, replayDelivery, type Delivery } from './api.ts'

const STATES = ['dead', 'pending'] as const

/** The dead and pending deliveries of a project, to webhooks and devices. */
export function Deliveries({ project }: { project: string }) {
  const [state, setState] = useState<(typeof STATES)[number]>('dead')
  const pages = usePages(`${project} ${state}`, cursor => readDeliveries(project, state, cursor))
  return (
    <section class="section" aria-labelledby="deliveries">
      <h2 id="deliveries">{t('webhooks.notDelivered')}</h2>
      <p class="page-lead">{t('webhooks.notDeliveredLead')}</p>
      <div class="segmented" role="group" aria-label={t('webhooks.state')}>
        {STATES.map(one => (
          <button
            key={one}
            type="button"
            aria-pressed={state === one}
            onClick={() => setState(one)}
          >
            {t(`webhooks.state.${one}`)}
          </button>
        ))}
      </div>
      <PagedList
        pages={pages}
        empty={<p class="note">{t(state === 'dead' ? 'webhooks.noDead' : 'webhooks.noPending')}</p>}
      >
        {delivery => (
          <li key={`${delivery.id} ${delivery.state}`}>
            <About project={project} delivery={delivery} />
            <div class="item-actions">
              {delivery.eventId !== null && (
                <a class="action-link" href={toEventPath(project, delivery.eventId)}>
                  {t('words.openEvent')}
                </a>
              )}
              {state === 'dead' && (
                <ActionButton
                  action={t('webhooks.retry')}
                  send={() => replayDelivery(project, delivery.id)}
                  onDone={() => {
                    showToast({ message: t('webhooks.queuedAgain') })
                    pages.reload()
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
  const name = target?.name ?? t(kind === 'webhook' ? 'webhooks.deletedWebhook' : 'webhooks.device')
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
            <bdi>{toOwnLanguage(reason)}</bdi> ·{' '}
          </>
        )}
        {t('webhooks.attemptCount', { count: attempts })}
        {at !== null && (
          <>
            {' '}
            ·{' '}
            {toRich({
              key: 'webhooks.last',
              values: { time: <Timestamp atMs={Date.parse(at)} hasDate /> },
            })}
          </>
        )}
        {nextAttemptAt !== null && (
          <>
            {' '}
            ·{' '}
            {toRich({
              key: 'webhooks.next',
              values: { time: <Timestamp atMs={Date.parse(nextAttemptAt)} hasDate /> },
            })}
          </>
        )}
      </p>
    </div>
  )
}
