import type { Account } from '../../../access/sign-in/schema.ts'
import { toMuteEnd } from '../channels/mute.ts'
import { ActionButton } from '../components/action-button.tsx'
import { Select } from '../components/fields.tsx'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { Loaded, MINUTE_MS, useRoute } from '../components/query.tsx'
import { alarmChanges } from '../live/connection.ts'
import { request } from '../request.ts'
import { findProject, isAllowed } from '../session.ts'
import { fromInputTime, toInputTime } from '../time.ts'
import { Clock } from './project-silence.tsx'

const ROUTE = '/api/projects/:projectId/on-duty'

interface DutyOptions {
  account: Account
  project: string
}

/** The member on duty in a project, whom every member can change. */
export function OnDuty({ account, project }: DutyOptions) {
  const place = { projectId: project }
  const query = useRoute(`GET ${ROUTE}`, place, { when: alarmChanges, everyMs: MINUTE_MS })
  const onDone = () => void query.refetch()
  return (
    <Loaded query={query}>
      {({ member, until }) => (
        <div class="actions">
          <p>
            {member ? <bdi>{member.name}</bdi> : 'Nobody'} is on duty{' '}
            {until !== null && <Clock word="until" at={until} />}
          </p>
          {isAllowed(account, project, 'member') && (
            <div class="item-actions">
              <FormButton
                action="Change"
                label="Change who is on duty"
                submit="Save"
                send={value =>
                  request(`PUT ${ROUTE}`, {
                    ...place,
                    memberId: value('memberId'),
                    until: fromInputTime(value('until')),
                  })
                }
                onDone={onDone}
              >
                <Who account={account} project={project} />
                <Field
                  name="until"
                  label="Until"
                  type="datetime-local"
                  value={toInputTime(toMuteEnd('morning', Date.now()))}
                />
              </FormButton>
              {member && (
                <ActionButton
                  action="End"
                  label="End the duty"
                  send={() => request(`DELETE ${ROUTE}`, place)}
                  onDone={onDone}
                />
              )}
            </div>
          )}
        </div>
      )}
    </Loaded>
  )
}

/** The members of the organization of a project. */
export function useMembers({ account, project }: DutyOptions) {
  const organizationId = findProject(account, project)?.organization.id ?? ''
  return useRoute('GET /api/organizations/:organizationId/members', { organizationId, limit: 100 })
}

function Who({ account, project }: DutyOptions) {
  const { id, name } = account.person
  const { data } = useMembers({ account, project })
  const options = (data?.items ?? []).map(({ person }) => ({
    ...{ value: person.id, text: person.name, isUserText: true },
  }))
  return <Select name="memberId" label="Who" options={options} value={id} valueText={name} />
}
