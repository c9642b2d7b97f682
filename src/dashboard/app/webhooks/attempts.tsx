import { useState } from 'preact/hooks'
import { Act, Unfold } from '../parts/act.tsx'
import { Field, Form } from '../parts/form.tsx'
import { Listed } from '../parts/listed.tsx'
import { tell } from '../parts/undo.tsx'
import { usePages } from '../users/use-pages.ts'
import { readAttempts, recover, resendAttempt, type Place } from './calls.ts'
import { AttemptDetails } from './attempt.tsx'
import { fromInputTime, toInputTime } from './input-time.ts'

const DAY_MS = 86_400_000
/** What a delivery takes, mostly: then its attempt can be seen. */
const SOON_MS = 2_000

interface AttemptsOptions {
  place: Place
  /** Whether events are sent: only then they can be sent again. */
  isEnabled: boolean
  /** Told when deliveries may have changed how the webhook is doing. */
  onDeed(): void
}

/** What was sent to a webhook and what it answered, and the ways to send again. */
export function Attempts({ place, isEnabled, onDeed }: AttemptsOptions) {
  const pages = usePages(`${place.project} ${place.webhook}`, cursor => readAttempts(place, cursor))
  const [open, setOpen] = useState<'recover'>()

  function say(events: number) {
    setOpen(undefined)
    tell({
      said:
        events === 0
          ? 'It has had all of them.'
          : `${events.toLocaleString()} ${events === 1 ? 'event is' : 'events are'} on the way.`,
    })
    setTimeout(look, SOON_MS)
  }

  function look() {
    pages.readAgain()
    onDeed()
  }

  return (
    <section class="part" aria-labelledby="attempts">
      <h2 id="attempts">Attempts</h2>
      <div class="acts">
        <button type="button" class="quiet-button" onClick={look}>
          Look again
        </button>
        {isEnabled && (
          <Unfold name="recover" open={open} onOpen={setOpen}>
            Recover what was missed
          </Unfold>
        )}
      </div>
      {open && <Recover place={place} onDone={say} />}
      <Listed
        pages={pages}
        nothing={<p class="aside">Nothing was sent yet. A test shows whether it arrives.</p>}
      >
        {attempt => (
          <li key={attempt.id}>
            <AttemptDetails place={place} attempt={attempt}>
              {isEnabled && attempt.eventId !== null && (
                <Act
                  action="Send again"
                  send={() => resendAttempt(place, attempt.id)}
                  onDone={({ events }) => say(events)}
                />
              )}
            </AttemptDetails>
          </li>
        )}
      </Listed>
    </section>
  )
}

function Recover({ place, onDone }: { place: Place; onDone(events: number): void }) {
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
