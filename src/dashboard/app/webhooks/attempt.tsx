import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { CodeBlock } from '../components/code-block.tsx'
import { Loaded } from '../components/loaded.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { useQuery } from '../components/use-query.ts'
import { toOwnLanguage } from '../locales/sentences.ts'
import { t, toRich } from '../locales/translate.tsx'
import { toEventPath } from '../paths.ts'
import { toDuration } from '../time.ts'
import { readAttempt, type Attempt, type AttemptDetail, type WebhookRef } from './api.ts'

interface AttemptOptions {
  place: WebhookRef
  attempt: Attempt
  /** True to show the details at once. */
  isOpen?: boolean
  /** Actions for the attempt. */
  children?: ComponentChildren
}

/** An attempt as a line that opens to show the request and the response. */
export function AttemptDetails({ place, attempt, isOpen = false, children }: AttemptOptions) {
  const [isShown, setShown] = useState(isOpen)
  const { eventId, entryId, eventTitle, number, outcome, status, reason, latencyMs, startedAt } =
    attempt
  return (
    <details
      class="attempt"
      open={isOpen}
      onToggle={({ currentTarget }) => setShown(currentTarget.open)}
    >
      <summary>
        <span class={`badge badge-${outcome === 'delivered' ? 'good' : 'bad'}`}>
          {status ?? t('webhooks.noResponse')}
        </span>
        <span class="attempt-what">
          <bdi>{eventTitle ?? toSubject(eventId, entryId)}</bdi>
          <span class="item-details">
            {toRich({
              key: number > 1 ? 'webhooks.attemptNumber' : 'webhooks.attemptDetails',
              values: {
                reason: <bdi>{toOwnLanguage(reason)}</bdi>,
                number,
                duration: toDuration(latencyMs),
                time: <Timestamp atMs={Date.parse(startedAt)} hasDate />,
              },
            })}
          </span>
        </span>
      </summary>
      {isShown && <Exchange place={place} attempt={attempt} />}
      {isShown && (
        <div class="actions">
          {eventId !== null && (
            <a class="action-link" href={toEventPath(place.project, eventId)}>
              {t('words.openEvent')}
            </a>
          )}
          {children}
        </div>
      )}
    </details>
  )
}

function toSubject(eventId: string | null, entryId: string | null): string {
  if (eventId !== null) return t('webhooks.eventId', { id: eventId.slice(-6) })
  return entryId === null ? t('webhooks.test') : t('webhooks.auditEntry', { id: entryId.slice(-6) })
}

function Exchange({ place, attempt: { id, status, response } }: AttemptOptions) {
  const detail = useQuery(id, () => readAttempt(place, id))
  const isExpired = detail.failure?.code === 'not_found' || detail.data?.request === null
  return (
    <>
      {status !== null &&
        (response ? (
          <CodeBlock label={t('webhooks.response')} text={response} />
        ) : (
          <p class="hint">{t('webhooks.noBody')}</p>
        ))}
      {isExpired ? (
        <p class="hint">{t('webhooks.requestExpired')}</p>
      ) : (
        <Loaded query={detail}>
          {({ request }) =>
            request && (
              <>
                <CodeBlock label={t('webhooks.request')} text={toText(request)} />
                {request.note !== null && <p class="hint">{request.note}.</p>}
              </>
            )
          }
        </Loaded>
      )}
    </>
  )
}

function toText({ method, headers, body }: NonNullable<AttemptDetail['request']>): string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return [method, ...lines, '', body ?? ''].join('\n')
}
