import { useState } from 'preact/hooks'
import type { Card, CardGroup } from '../../../insights/schema.ts'
import { Select } from '../components/fields.tsx'
import { Field, Form } from '../components/form.tsx'
import { t } from '../locales/translate.tsx'
import { editCard } from './api.ts'
import { GROUPS, KINDS, PERIODS, toPeriodName } from './card-texts.ts'

interface CardFormOptions {
  project: string
  card: Card
  onDone(card: Card): void
}

/** The settings of a card. */
export function CardForm({ project, card, onDone }: CardFormOptions) {
  const [kind, setKind] = useState<string>(card.kind)
  const [groupBy, setGroupBy] = useState<string>(card.groupBy ?? 'channel')
  const isGrouped = kind === 'top' || kind === 'table'
  return (
    <Form
      action={t('words.save')}
      send={value => {
        const group = value('groupBy')
        return editCard(project, card.id, {
          title: value('title').trim() === '' ? null : value('title'),
          // The options of the selects are these names.
          kind: value('kind') as Card['kind'],
          groupBy: group === '' ? null : (group as CardGroup),
          metadataPath: value('metadataPath') === '' ? null : value('metadataPath'),
          q: value('q'),
          hours: Number(value('hours')),
        })
      }}
      onDone={onDone}
    >
      <Field
        name="title"
        label={t('insights.title')}
        hint={t('insights.titleHint')}
        autocomplete="off"
        isOptional
        value={card.title ?? ''}
      />
      <Field
        name="q"
        label={t('insights.search')}
        hint={t('insights.searchHint')}
        autocomplete="off"
        isOptional
        value={card.q}
      />
      <Select
        name="kind"
        label={t('insights.kind')}
        options={toOptions(KINDS)}
        value={kind}
        onChange={setKind}
      />
      {isGrouped && (
        <Select
          name="groupBy"
          label={t('insights.groupBy')}
          options={toOptions(GROUPS)}
          value={groupBy}
          onChange={setGroupBy}
        />
      )}
      {isGrouped && groupBy === 'metadata' && (
        <Field
          name="metadataPath"
          label={t('insights.metadataPath')}
          hint={t('insights.metadataPathHint')}
          autocomplete="off"
          value={card.metadataPath ?? ''}
        />
      )}
      <PeriodSelect hours={card.hours} />
    </Form>
  )
}

interface PeriodSelectOptions {
  hours: number
  onChange?(hours: number): void
}

/** A choice of periods. It also has the present one, which a program may have set. */
export function PeriodSelect({ hours, onChange }: PeriodSelectOptions) {
  const all = [...new Set([...Object.keys(PERIODS).map(Number), hours])].toSorted((a, b) => a - b)
  return (
    <Select
      name="hours"
      label={t('insights.period')}
      options={all.map(one => ({ value: String(one), text: toPeriodName(one) }))}
      value={String(hours)}
      onChange={value => onChange?.(Number(value))}
    />
  )
}

function toOptions(names: Readonly<Record<string, Parameters<typeof t>[0]>>) {
  return Object.entries(names).map(([value, name]) => ({ value, text: t(name) }))
}
