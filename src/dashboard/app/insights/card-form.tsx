import { useState } from 'preact/hooks'
import type { Card, CardEdit, CardGroup } from '../../../log/insights/schema.ts'
import { Field, Form } from '../components/form.tsx'
import { pickChanges } from '../changes.ts'
import { Select } from '../components/fields.tsx'
import { toExactText, toReaderText } from '../feed/reader-dates.ts'
import { request } from '../request.ts'
import { toPeriodName } from '../time.ts'
import { GROUPS, KINDS } from './card-texts.ts'

/** The periods that a card can be set to, in hours. */
const PERIODS = [1, 24, 168, 720, 2160]

interface CardFormOptions {
  project: string
  /** A new card has no ID yet. */
  card: Omit<Card, 'id' | 'createdAt'> & { id?: string }
  onDone(card: Card): void
}

/** The settings of a card, or of a new one. */
export function CardForm({ project, card, onDone }: CardFormOptions) {
  // As it was when the form was opened.
  const [before] = useState(card)
  const [kind, setKind] = useState<string>(card.kind)
  const [groupBy, setGroupBy] = useState<string>(card.groupBy ?? 'channel')
  const isGrouped = kind === 'top'
  // A program may have set another period.
  const hours = [...new Set([...PERIODS, card.hours])].sort((one, other) => one - other)
  return (
    <Form
      action={before.id === undefined ? 'Add' : 'Save'}
      send={value => {
        const group = value('groupBy')
        const edited = {
          title: value('title').trim() === '' ? null : value('title'),
          // The options of the selects are these names.
          kind: value('kind') as Card['kind'],
          groupBy: group === '' ? null : (group as CardGroup),
          metadataPath: value('metadataPath') === '' ? null : value('metadataPath'),
          q: toExactText(value('q')),
          hours: Number(value('hours')),
        }
        if (before.id === undefined)
          return request('POST /api/projects/:projectId/insights', {
            projectId: project,
            ...edited,
          })
        return request('PATCH /api/projects/:projectId/insights/:cardId', {
          projectId: project,
          cardId: before.id,
          ...pickChanges<CardEdit>(before, edited),
        })
      }}
      onDone={onDone}
    >
      <Field
        name="title"
        label="Title"
        hint="Leave it empty for a title made from the other fields."
        isOptional
        value={card.title ?? ''}
      />
      <Field
        name="q"
        label="Search"
        hint="As in the search box, such as channel:payments tag:vip. Leave it empty to count all events."
        isOptional
        value={toReaderText(card.q)}
      />
      <Select
        name="kind"
        label="Show as"
        options={toOptions(KINDS)}
        value={kind}
        onChange={setKind}
      />
      {isGrouped && (
        <Select
          name="groupBy"
          label="Count by"
          options={toOptions(GROUPS)}
          value={groupBy}
          onChange={setGroupBy}
        />
      )}
      {isGrouped && groupBy === 'metadata' && (
        <Field
          name="metadataPath"
          label="Name in the metadata"
          hint="For example plan, or order.currency for a value inside another."
          value={card.metadataPath ?? ''}
        />
      )}
      <Select
        name="hours"
        label="Period"
        options={hours.map(one => ({ value: String(one), text: toPeriodName(one) }))}
        value={String(card.hours)}
      />
    </Form>
  )
}

function toOptions(names: Readonly<Record<string, string>>) {
  return Object.entries(names).map(([value, text]) => ({ value, text }))
}
