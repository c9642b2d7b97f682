import type { Account } from '../../../access/sign-in/schema.ts'
import type { Escalation, StageTo } from '../../../log/channels/escalation-schema.ts'
import type { ProjectChannel } from '../../../log/channels/schema.ts'
import { Select } from '../components/fields.tsx'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { Section } from '../components/item.tsx'
import { showToast } from '../components/toast.tsx'
import { toPlural } from '../locale.ts'
import { isAllowed } from '../session.ts'
import { useMembers } from '../threads/on-duty.tsx'
import { editChannel } from './api.ts'

const LEVELS = {
  critical: 'Critical events',
  high: 'High and critical events',
}
/** The names of those whom a stage can tell, by the JSON of the choice. */
const GROUPS = {
  '"onDuty"': 'who is on duty',
  '{"role":"admin"}': 'the admins',
  '{"role":"owner"}': 'the owners',
  '{"role":"viewer"}': 'everybody',
}
const STAGES = ['Tell first', 'Then tell', 'At last tell']

interface EscalationOptions {
  account: Account
  project: string
  channel: ProjectChannel
}

/** How members are told of the urgent events of a channel, as a sentence that they can change. */
export function EscalationSettings({ account, project, channel }: EscalationOptions) {
  const {
    level = 'critical',
    repeatMinutes = 5,
    stages = [],
  }: Escalation = channel.escalation ?? {}
  const { data } = useMembers({ account, project })
  const names = new Map(Object.entries(GROUPS))
  for (const { person } of data?.items ?? [])
    names.set(JSON.stringify({ members: [person.id] }), person.name)
  // Several members are chosen by a program.
  for (const key of stages.map(({ to }) => JSON.stringify(to)))
    names.set(key, names.get(key) ?? 'chosen members')
  const told = stages.map(
    ({ to, afterMinutes }) =>
      `${names.get(JSON.stringify(to))} ${afterMinutes === 0 ? 'at once' : `after ${toPlural(afterMinutes, 'minute')}`}`,
  )
  const options = [...names].map(([value, text]) => ({ value, text, isUserText: true }))
  return (
    <Section id="urgent" title="Urgent events">
      <p class="page-lead">
        {LEVELS[level]}: tell <bdi>{told.join('; ') || 'everybody at once'}</bdi>. Repeat{' '}
        {level !== 'critical' && 'critical ones '}every {toPlural(repeatMinutes, 'minute')} until
        somebody acknowledges.
      </p>
      {isAllowed(account, project, 'member') && (
        <FormButton
          action="Change"
          label="Change who is told"
          submit="Save"
          send={value =>
            editChannel(project, channel.id, {
              escalation: {
                level: value('level') as typeof level,
                repeatMinutes: Number(value('repeatMinutes')),
                stages: STAGES.flatMap((_, nth) => {
                  const to = value(`${nth}.to`)
                  const afterMinutes = Number(value(`${nth}.after`))
                  return to ? [{ afterMinutes, to: JSON.parse(to) as StageTo }] : []
                }),
              },
            })
          }
          onDone={() => showToast('Channel saved.')}
        >
          <Select
            name="level"
            label="Events"
            options={Object.entries(LEVELS).map(([value, text]) => ({ value, text }))}
            value={level}
          />
          {STAGES.map((label, nth) => (
            <div key={label} class="days">
              <Select
                name={`${nth}.to`}
                label={label}
                options={[
                  { value: '', text: nth === 0 ? 'everybody now' : 'nobody else' },
                  ...options,
                ]}
                value={JSON.stringify(stages[nth]?.to)}
              />
              <Field
                name={`${nth}.after`}
                label="After minutes"
                isNumber
                value={String(
                  stages[nth]?.afterMinutes ??
                    (stages.at(-1)?.afterMinutes ?? -5) + 5 * (nth + 1 - stages.length),
                )}
              />
            </div>
          ))}
          <Field
            name="repeatMinutes"
            label="Repeat critical events every so many minutes"
            isNumber
            hint="2 to 60. Until somebody acknowledges, for at most two hours."
            value={String(repeatMinutes)}
          />
        </FormButton>
      )}
    </Section>
  )
}
