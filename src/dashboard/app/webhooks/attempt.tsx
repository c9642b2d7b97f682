import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { CodeBlock } from '../components/copy-button.tsx'
import { Loaded, useRoute } from '../components/query.tsx'
import { Moment } from '../components/timestamp.tsx'
import { toVisibleTitle } from '../feed/log.ts'
import { toEventPath } from '../paths.ts'
import { toDuration } from '../time.ts'
import type { Attempt, AttemptDetail } from '../../../delivery/webhooks/webhook-schema.ts'
import type { WebhookRef } from './recover.ts'

interface AttemptOptions {
  place: WebhookRef
  attempt: Attempt
  /** True to show the details at once. */
  isOpen?: boolean
  /** Earlier attempts that failed in the same way. */
  others?: readonly ComponentChildren[] | undefined
  /** Actions for the attempt. */
  children?: ComponentChildren
}

/** An attempt as a line that opens to show the request and the response. */
export function AttemptDetails(options: AttemptOptions) {
  const { place, attempt, isOpen = false, others = [], children } = options
  const [isShown, setShown] = useState(isOpen)
  const { kind, eventId, eventTitle, number, outcome, status, reason, latencyMs, startedAt } =
    attempt
  return (
    <details
      class="attempt"
      open={isOpen}
      onToggle={({ currentTarget }) => setShown(currentTarget.open)}
    >
      <summary>
        <span class={`badge badge-${outcome === 'delivered' ? 'good' : 'bad'}`}>
          {status ?? 'No response'}
        </span>
        <span class="attempt-what">
          <bdi>{(eventTitle && toVisibleTitle(eventTitle)) ?? toSubject(kind, eventId)}</bdi>
          <span class="item-details">
            {kind === 'event.acknowledged' && 'Acknowledgement · '}
            <bdi>{reason}</bdi>
            {others.length > 0 && ` ×${others.length + 1}`}
            {number > 1 && `, attempt ${number.toLocaleString()}`} · {toDuration(latencyMs)} ·{' '}
            <Moment at={startedAt} />
          </span>
        </span>
      </summary>
      {isShown && <Exchange place={place} attempt={attempt} />}
      {isShown && (
        <div class="actions">
          {eventId !== null && (
            <a class="action-link" href={toEventPath(place.projectId, eventId)}>
              Open event
            </a>
          )}
          {children}
        </div>
      )}
      {isShown && others}
    </details>
  )
}

function toSubject(kind: Attempt['kind'], eventId: string | null): string {
  if (eventId !== null) return `Event …${eventId.slice(-6)}`
  return kind === 'audit.entry' ? 'Audit entry' : 'Test'
}

function Exchange({ place, attempt: { id, status, response } }: AttemptOptions) {
  const detail = useRoute('GET /api/projects/:projectId/webhooks/:webhookId/attempts/:attemptId', {
    ...place,
    attemptId: id,
  })
  const isExpired = detail.failure?.code === 'not_found' || detail.data?.request === null
  return (
    <>
      {status !== null &&
        (response ? (
          <CodeBlock label="Response" text={response} />
        ) : (
          <p class="hint">The response had no body.</p>
        ))}
      {isExpired ? (
        <p class="hint">The request is no longer stored.</p>
      ) : (
        <Loaded query={detail}>
          {({ request }) =>
            request && (
              <>
                <CodeBlock label="Request" text={toText(request)} />
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
