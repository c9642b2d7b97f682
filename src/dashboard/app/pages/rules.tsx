import { useState } from 'preact/hooks'
import { toPeriod } from '../../../base/period.ts'
import { toConditionText } from '../../../delivery/rules/evaluate.ts'
import type {
  NewRule,
  Rule,
  RulePreview,
  RulePreviewInput,
} from '../../../delivery/rules/schema.ts'
import { ActionButton } from '../components/action-button.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Select } from '../components/fields.tsx'
import { Field, Found } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { Item } from '../components/item.tsx'
import { ProjectLayout } from '../components/layout.tsx'
import { capitalize } from '../components/level.tsx'
import { PagedList } from '../components/pages.tsx'
import { MINUTE_MS, useQuery, useRoute } from '../components/query.tsx'
import { StateMark } from '../components/state.tsx'
import { useChannels } from '../feed/use-channels.ts'
import { request } from '../request.ts'
import { isAllowed } from '../session.ts'
import { toDateTime } from '../time.ts'
import { toPlural } from '../locale.ts'
import type { ProjectPageProps } from './props.ts'

const ROUTE = '/api/projects/:projectId/rules'
const LEVELS = ['low', 'normal', 'high', 'critical'] as const
const TIMES = [60, 300, 600, 1_800, 3_600, 21_600, 86_400, 604_800, 2_592_000]
const NEW = { name: '', q: '', moreThan: 3, withinSeconds: 600, level: 'high' } as const

/** The rules of a project, each with what it waits for and whether it fires. */
export default function RulesPage({ account, project }: ProjectPageProps) {
  const rules = useRoute(`GET ${ROUTE}`, { projectId: project }, { everyMs: MINUTE_MS })
  const mayEdit = isAllowed(account, project, 'member')
  const reload = () => void rules.refetch()
  const save = (id: string, rule: NewRule) =>
    request(`PUT ${ROUTE}/:ruleId`, { projectId: project, ruleId: id, ...rule })
  return (
    <ProjectLayout account={account} project={project} at="rules" title="Rules">
      <div class="settings">
        <p class="page-lead">
          A rule sends an event to a channel when a search finds too many events, or none.{' '}
          <a href="/docs/rules">How rules work</a>
        </p>
        {mayEdit && (
          <div class="primary-action">
            <FormButton
              action="New rule"
              isPrimary
              submit="Create rule"
              send={value => request(`POST ${ROUTE}`, { projectId: project, ...read(value) })}
              onDone={reload}
            >
              <Fields project={project} />
            </FormButton>
          </div>
        )}
        <PagedList
          pages={{ ...rules, items: rules.data?.items ?? [] }}
          empty={
            <div class="empty-state">
              <h2>No rules yet</h2>
              <p>
                Press <b>New rule</b> to be told when payments fail more than 3 times in 10 minutes,
                or when no order came for 1 hour.
              </p>
            </div>
          }
        >
          {rule => (
            <Item
              key={rule.id}
              title={
                <>
                  <bdi>{rule.name}</bdi> {rule.firingSince && <StateMark state="firing" />}
                </>
              }
              details={[
                <bdi>{rule.q}</bdi>,
                toText(rule),
                <bdi>{rule.channelName}</bdi>,
                !rule.isOn && 'Off',
              ]}
            >
              {mayEdit && (
                <>
                  <FormButton
                    action="Edit"
                    label={`Edit ${rule.name}`}
                    submit="Save"
                    send={value => save(rule.id, { ...read(value), isOn: rule.isOn })}
                    onDone={reload}
                  >
                    <Fields project={project} rule={rule} />
                  </FormButton>
                  <ActionButton
                    action={rule.isOn ? 'Turn off' : 'Turn on'}
                    label={`Turn ${rule.isOn ? 'off' : 'on'} ${rule.name}`}
                    send={() =>
                      save(rule.id, { ...rule, channel: rule.channelId, isOn: !rule.isOn })
                    }
                    onDone={reload}
                  />
                  <ConfirmButton
                    isQuiet
                    action="Delete"
                    title="Delete"
                    name={rule.name}
                    lead="If it fires, its thread is resolved."
                    yes="Delete rule"
                    send={() =>
                      request(`DELETE ${ROUTE}/:ruleId`, { projectId: project, ruleId: rule.id })
                    }
                    onDone={reload}
                  />
                </>
              )}
            </Item>
          )}
        </PagedList>
      </div>
    </ProjectLayout>
  )
}

function toText({ moreThan, withinSeconds }: Pick<Rule, 'moreThan' | 'withinSeconds'>) {
  return toConditionText({ moreThan, withinMs: withinSeconds * 1_000 })
}

/** Reads the fields of a rule. */
const read = (value: (name: string) => string) => ({
  name: value('name'),
  channel: value('channel'),
  level: value('level') as Rule['level'],
  q: value('q'),
  moreThan: value('kind') === 'silence' ? null : Number(value('moreThan')),
  withinSeconds: Number(value('withinSeconds')),
})

/** The fields of a rule, with what it would have done. */
function Fields({ project, rule }: { project: string; rule?: Rule }) {
  const [before] = useState<typeof NEW | Rule>(rule ?? NEW)
  const [{ q, moreThan, withinSeconds }, setAsked] = useState<RulePreviewInput>(before)
  const { list = [] } = useChannels(project)
  const input = { projectId: project, q, moreThan, withinSeconds }
  const preview = useQuery(q.trim() ? JSON.stringify(input) : undefined, () =>
    request(`POST ${ROUTE}/preview`, input),
  )
  const isSilence = moreThan === null
  const times = [...new Set([...TIMES, before.withinSeconds])].sort((a, b) => a - b)
  return (
    <Found failure={preview.failure}>
      <div
        class="form-part"
        onChange={({ currentTarget }) => {
          const fields = new FormData(currentTarget.closest('form') ?? undefined)
          setAsked(read(name => String(fields.get(name) ?? '')))
        }}
      >
        <Field name="q" label="Search" hint="Such as channel:payments failed." value={before.q} />
        <div class="form-part form-row">
          <Select
            name="kind"
            label="Finds"
            value={before.moreThan === null ? 'silence' : 'count'}
            options={[
              { value: 'count', text: 'more than' },
              { value: 'silence', text: 'nothing' },
            ]}
          />
          <div hidden={isSilence}>
            <Field name="moreThan" label="Events" isNumber value={String(before.moreThan ?? 3)} />
          </div>
          <Select
            name="withinSeconds"
            label={isSilence ? 'For' : 'Within'}
            value={String(before.withinSeconds)}
            options={times.map(seconds => ({
              value: String(seconds),
              text: toPeriod(seconds),
            }))}
          />
        </div>
      </div>
      <Select
        name="channel"
        label="Tell channel"
        value={rule?.channelId}
        valueText={rule?.channelName}
        options={list.map(({ id, name }) => ({ value: id, text: name, isUserText: true }))}
      />
      <Select
        name="level"
        label="Level of the event"
        value={before.level}
        options={LEVELS.map(value => ({ value, text: capitalize(value) }))}
      />
      <Field
        name="name"
        label="Name"
        hint="The title of its event begins with it."
        value={before.name}
      />
      {preview.data && <Preview key={JSON.stringify(input)} {...{ input, first: preview.data }} />}
    </Found>
  )
}

/** Says when a rule would have fired. */
function Preview({
  input,
  first,
}: {
  input: RulePreviewInput & { projectId: string }
  first: RulePreview
}) {
  const [parts, setParts] = useState([first])
  const { until, nextCursor } = parts.at(-1)!
  const count = parts.reduce((sum, part) => sum + part.count, 0)
  const time = until && toDateTime(Date.parse(until))
  return (
    <div class="notice" role="status">
      <p>
        Would have fired <b>{toPlural(count, 'time')}</b> in the last 30 days
        {nextCursor && `, up to ${time}`}.
      </p>
      <ul>
        {parts
          .toReversed()
          .flatMap(({ firings }) => firings)
          .slice(0, 5)
          .map(({ from, to }) => (
            <li key={from}>
              {toDateTime(Date.parse(from))}
              {to && ` until ${toDateTime(Date.parse(to))}`}
            </li>
          ))}
      </ul>
      {nextCursor && (
        <ActionButton
          action="Look further"
          send={() => request(`POST ${ROUTE}/preview`, { ...input, cursor: nextCursor })}
          onDone={part => setParts([...parts, part])}
        />
      )}
    </div>
  )
}
