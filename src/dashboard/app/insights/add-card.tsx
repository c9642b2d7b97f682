import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Card, NewCard } from '../../../log/insights/schema.ts'
import { Field, Form } from '../components/form.tsx'
import { toExactText, toReaderText } from '../feed/reader-dates.ts'
import { request, type Failure } from '../request.ts'
import { PeriodSelect } from './card-form.tsx'
import { QuietButton } from '../components/quiet-button.tsx'

/** The cards that one click makes. */
const CHOICES: readonly { name: string; card: Pick<NewCard, 'kind' | 'groupBy'> }[] = [
  { name: 'Count over time', card: { kind: 'series' } },
  { name: 'Number', card: { kind: 'number' } },
  { name: 'By channel', card: { kind: 'top', groupBy: 'channel' } },
  { name: 'By tag', card: { kind: 'top', groupBy: 'tag' } },
  { name: 'Top users', card: { kind: 'top', groupBy: 'user' } },
]

interface AddCardOptions {
  project: string
  /** The search and the period that the card begins with. */
  q: string
  hours: number
  onAdded(card: Card): void
  onCancel(): void
}

/** A search, and a button for each kind of card that it can become. */
export function AddCard({ project, q, hours, onAdded, onCancel }: AddCardOptions) {
  const [search, setSearch] = useState(toReaderText(q))
  const [period, setPeriod] = useState(hours)
  const [isByMetadata, setByMetadata] = useState(false)
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  const input = useRef<HTMLInputElement>(null)
  const first = useRef<HTMLButtonElement>(null)
  const id = useId()
  useLayoutEffect(
    () => (q === '' ? input.current : first.current)?.focus({ preventScroll: true }),
    [],
  )

  const create = (card: Omit<NewCard, 'q' | 'hours'>) =>
    request('POST /api/projects/:projectId/insights', {
      projectId: project,
      ...card,
      q: toExactText(search),
      hours: period,
    })

  async function add(card: Pick<NewCard, 'kind' | 'groupBy'>) {
    if (isBusy) return
    setBusy(true)
    const result = await create(card)
    setBusy(false)
    setFailure(result.ok ? undefined : result.failure)
    if (result.ok) onAdded(result.data)
    else if (result.failure.details.length > 0) input.current?.focus()
  }

  const details = failure?.details ?? []
  const problem =
    details.length > 0 ? details.map(({ message }) => message).join(' · ') : failure?.message
  return (
    <section class="add-card" aria-label="Add a card">
      <div class="field">
        <label for={id}>Search</label>
        <p class="hint" id={`${id}-hint`}>
          As in the search box, such as channel:payments tag:vip. Leave it empty to count all
          events.
        </p>
        <div class="input">
          <input
            ref={input}
            id={id}
            value={search}
            autocomplete="off"
            spellcheck={false}
            aria-invalid={details.length > 0}
            aria-describedby={`${id}-hint ${id}-issue`}
            onInput={({ currentTarget }) => setSearch(currentTarget.value)}
          />
        </div>
      </div>
      <PeriodSelect hours={period} onChange={setPeriod} />
      <p class="issue" id={`${id}-issue`} role="alert">
        {!isByMetadata && problem}
      </p>
      <h2 id={`${id}-kind`}>Show as</h2>
      <div class="choices" role="group" aria-labelledby={`${id}-kind`}>
        {CHOICES.map(({ name, card }, at) => (
          <button
            key={name}
            ref={at === 0 ? first : null}
            type="button"
            class="choice"
            aria-disabled={isBusy}
            onClick={() => void add(card)}
          >
            {name}
          </button>
        ))}
        <button
          type="button"
          class="choice"
          aria-expanded={isByMetadata}
          onClick={() => setByMetadata(!isByMetadata)}
        >
          By metadata value
        </button>
      </div>
      {isByMetadata && (
        <Form
          action="Add"
          send={value =>
            create({ kind: 'top', groupBy: 'metadata', metadataPath: value('metadataPath') })
          }
          onDone={onAdded}
        >
          <Field
            name="metadataPath"
            label="Name in the metadata"
            hint="For example plan, or order.currency for a value inside another."
          />
        </Form>
      )}
      <QuietButton onClick={onCancel}>Cancel</QuietButton>
    </section>
  )
}
