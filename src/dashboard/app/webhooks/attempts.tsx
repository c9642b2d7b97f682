import { useState } from 'preact/hooks'
import type { Attempt } from '../../../delivery/webhooks/webhook-schema.ts'
import { ActionButton } from '../components/action-button.tsx'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { PagedList, toGroups, usePages } from '../components/pages.tsx'
import { showToast } from '../components/toast.tsx'
import { request } from '../request.ts'
import { recover, type WebhookRef } from './recover.ts'
import { AttemptDetails } from './attempt.tsx'
import { fromInputTime, toInputTime } from '../time.ts'
import { toPlural } from '../locale.ts'
import { QuietButton } from '../components/buttons.tsx'
import { Section } from '../components/item.tsx'

const RESEND = 'POST /api/projects/:projectId/webhooks/:webhookId/attempts/:attemptId/resend'
const DAY_MS = 86_400_000
/** How long a delivery usually takes. After that, the list is refreshed. */
const SOON_MS = 2_000

interface AttemptsOptions {
  place: WebhookRef
  /** True if the webhook is enabled. Only then events can be resent. */
  isEnabled: boolean
  /** Called when deliveries may have changed the status of the webhook. */
  onActivity(): void
}

/** The attempts of a webhook, with buttons to resend and to recover missed events. */
export function Attempts({ place, isEnabled, onActivity }: AttemptsOptions) {
  const pages = usePages('GET /api/projects/:projectId/webhooks/:webhookId/attempts', place)

  function showQueued(events: number) {
    showToast(events === 0 ? 'Nothing to recover' : `${toPlural(events, 'message')} queued.`)
    setTimeout(refresh, SOON_MS)
  }

  function refresh() {
    void pages.refetch()
    onActivity()
  }

  const toDetails = (attempt: Attempt, others?: readonly Attempt[]) => (
    <AttemptDetails
      // A group stays open when a newer attempt joins it.
      key={others ? '' : attempt.id}
      {...{ place, attempt }}
      others={others?.map(one => toDetails(one))}
    >
      {isEnabled && attempt.kind === 'event.created' && (
        <ActionButton
          action="Resend"
          send={() => request(RESEND, { ...place, attemptId: attempt.id })}
          onDone={({ events }) => showQueued(events)}
        />
      )}
    </AttemptDetails>
  )

  return (
    <Section id="attempts" title="Attempts">
      <div class="actions">
        <QuietButton onClick={refresh}>Refresh</QuietButton>
        {isEnabled && (
          <FormButton
            action="Recover missed events"
            submit="Recover"
            send={value =>
              recover(place, fromInputTime(value('since')), fromInputTime(value('until')))
            }
            onDone={({ events }) => showQueued(events)}
          >
            <Period />
          </FormButton>
        )}
      </div>
      <PagedList
        pages={{ ...pages, items: toGroups(pages.items, toFailure) }}
        empty={<p class="note">No attempts yet. Send a test to check the webhook.</p>}
      >
        {([newest, ...others]) => (
          <li key={(others.at(-1) ?? newest!).id}>{toDetails(newest!, others)}</li>
        )}
      </PagedList>
    </Section>
  )
}

/** How an attempt failed; its ID if it did not. */
const toFailure = ({ id, outcome, status, reason }: Attempt) =>
  outcome === 'delivered' ? id : `${status} ${reason}`

/** The period of a recovery, which ends just after the form was opened. */
function Period() {
  const [nowMs] = useState(Date.now)
  return (
    <>
      <p class="hint">
        Delivers the matching events that arrived in this period and that the webhook has not
        received, oldest first.
      </p>
      <Field
        name="since"
        label="From"
        type="datetime-local"
        hint="At most 30 days ago."
        value={toInputTime(nowMs - DAY_MS)}
      />
      <Field name="until" label="To" type="datetime-local" value={toInputTime(nowMs + 60_000)} />
    </>
  )
}
