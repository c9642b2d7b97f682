import { useState } from 'preact/hooks'
import { ActionButton, DisclosureButton } from '../components/action-button.tsx'
import { Field, Form } from '../components/form.tsx'
import { PagedList } from '../components/paged-list.tsx'
import { showToast } from '../components/toast.tsx'
import { usePages } from '../components/use-pages.ts'
import { readAttempts, recover, resendAttempt, type WebhookRef } from './api.ts'
import { AttemptDetails } from './attempt.tsx'
import { fromInputTime, toInputTime } from './input-time.ts'

const DAY_MS = 86_400_000
/** What a delivery takes, mostly: then its attempt can be seen. */
const SOON_MS = 2_000

interface AttemptsOptions {
  place: WebhookRef
  /** Whether events are sent: only then they can be sent again. */
  isEnabled: boolean
  /** Told when deliveries may have changed how the webhook is doing. */
  onActivity(): void
}

/** What was sent to a webhook and what it answered, and the ways to send again. */
export function Attempts({ place, isEnabled, onActivity }: AttemptsOptions) {
  const pages = usePages(`${place.project} ${place.webhook}`, cursor => readAttempts(place, cursor))
  const [open, setOpen] = useState<'recover'>()

  function say(events: number) {
    setOpen(undefined)
    showToast({
      message:
        events === 0
          ? 'It has had all of them.'
          : `${events.toLocaleString()} ${events === 1 ? 'event is' : 'events are'} on the way.`,
    })
    setTimeout(look, SOON_MS)
  }

  function look() {
    pages.readAgain()
    onActivity()
  }

  return (
    <section class="section" aria-labelledby="attempts">
      <h2 id="attempts">Attempts</h2>
      <div class="actions">
        <button type="button" class="quiet-button" onClick={look}>
          Look again
        </button>
        {isEnabled && (
          <DisclosureButton name="recover" open={open} onOpen={setOpen}>
            Recover what was missed
          </DisclosureButton>
        )}
      </div>
      {open && <Recover place={place} onDone={say} />}
      <PagedList
        pages={pages}
        empty={<p class="note">Nothing was sent yet. A test shows whether it arrives.</p>}
      >
        {attempt => (
          <li key={attempt.id}>
            <AttemptDetails place={place} attempt={attempt}>
              {isEnabled && attempt.eventId !== null && (
                <ActionButton
                  action="Send again"
                  send={() => resendAttempt(place, attempt.id)}
                  onDone={({ events }) => say(events)}
                />
              )}
            </AttemptDetails>
          </li>
        )}
      </PagedList>
    </section>
  )
}

function Recover({ place, onDone }: { place: WebhookRef; onDone(events: number): void }) {
  const [nowMs] = useState(Date.now)
  return (
    <Form
      action="Recover"
      send={value => recover(place, fromInputTime(value('since')), fromInputTime(value('until')))}
      onDone={({ events }) => onDone(events)}
    >
      <p class="hint">
        Events of this time that it is for and has not had are delivered, the oldest first.
      </p>
      <Field
        name="since"
        label="From"
        type="datetime-local"
        autocomplete="off"
        hint="At most 30 days ago."
        value={toInputTime(nowMs - DAY_MS)}
      />
      <Field
        name="until"
        label="To"
        type="datetime-local"
        autocomplete="off"
        value={toInputTime(nowMs + 60_000)}
      />
    </Form>
  )
}
