import type { Role } from '../../../access/guard/permissions.ts'
import type { Member } from '../../../access/organizations/schema.ts'
import type { Account } from '../../../access/sign-in/schema.ts'
import { ActionButton } from '../components/action-button.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Details, Section } from '../components/item.tsx'
import { PagedList, usePages } from '../components/pages.tsx'
import { Moment } from '../components/timestamp.tsx'
import { showResult } from '../components/toast.tsx'
import { withVerification } from '../components/verification.ts'
import { request } from '../request.ts'
import { ROLES, isAtLeast } from '../session.ts'
import { type ShownLink, LinkOnce, type NewLink } from './link-once.tsx'
import { useSignal } from '@preact/signals'
import type { TabOptions } from './general-tab.tsx'
import { InviteForm, Invites } from './invites.tsx'
import { ResetLinks } from './reset-links.tsx'

/** The members of an organization, with its pending invites and reset links. */
export function MembersTab({ account, own }: TabOptions) {
  const invite = useSignal<NewLink>()
  const reset = useSignal<NewLink>()
  const isAdmin = isAtLeast(own.role, 'admin')
  return (
    <>
      {isAdmin && (
        <div class="primary-action">
          <InviteForm own={own} link={invite} />
        </div>
      )}
      <LinkOnce link={invite} />
      <LinkOnce link={reset} />
      <Members account={account} own={own} link={reset} />
      {isAdmin && <Invites organization={own.id} link={invite} />}
      {own.role === 'owner' && <ResetLinks organization={own.id} link={reset} />}
    </>
  )
}

const MEMBER = '/api/organizations/:organizationId/members/:accountId'

interface MembersOptions {
  account: Account
  own: Account['organizations'][number]
  /** The newest password-reset link. */
  link: ShownLink
}

/** The members of an organization, with the actions of its admins and owners. */
function Members({ account, own, link }: MembersOptions) {
  const place = { organizationId: own.id }
  const members = usePages('GET /api/organizations/:organizationId/members', {
    ...place,
    limit: 50,
  })

  async function changeRole({ person }: Member, role: Role) {
    const change = { ...place, accountId: person.id, role }
    const result = await withVerification(() => request(`PATCH ${MEMBER}`, change))
    void members.refetch()
    return result
  }

  /** Changes a role and returns whether it worked. */
  async function choose(member: Member, role: Role): Promise<boolean> {
    return showResult(await changeRole(member, role), {
      message: `${member.person.name} now has the role ${role}.`,
      undo: () => changeRole(member, member.role),
    })
  }

  return (
    <Section id="members" title="Members">
      <PagedList pages={members} empty={null}>
        {member => {
          const { person, role, lastSeenAt } = member
          const isSelf = person.id === account.person.id
          const isOwner = own.role === 'owner' && !isSelf
          const memberPlace = { ...place, accountId: person.id }
          const mayRemove = isOwner || (own.role === 'admin' && !isSelf && role !== 'owner')
          return (
            <li key={person.id}>
              <div class="item-main">
                <bdi>{person.name}</bdi> {isSelf && <span class="badge badge-good">You</span>}
                <Details>
                  <bdi>{person.email}</bdi>
                  {lastSeenAt !== null && <Moment word="last seen" at={lastSeenAt} />}
                </Details>
              </div>
              {isOwner ? (
                <span class="input">
                  <select
                    aria-label={`Role of ${person.name}`}
                    value={role}
                    onChange={async ({ currentTarget }) => {
                      const wanted = ROLES.find(one => one === currentTarget.value)
                      if (!wanted || !(await choose(member, wanted))) currentTarget.value = role
                    }}
                  >
                    {ROLES.map(one => (
                      <option key={one} value={one}>
                        {one}
                      </option>
                    ))}
                  </select>
                </span>
              ) : (
                <span class="badge">{role}</span>
              )}
              <span class="item-actions">
                {isOwner && (
                  <ActionButton
                    action="Create password-reset link"
                    label={`Create password-reset link for ${person.name}`}
                    send={() => request(`POST ${MEMBER}/reset-link`, memberPlace)}
                    onDone={created => {
                      link.value = { ...created, title: `Password-reset link for ${person.name}` }
                    }}
                  />
                )}
                {mayRemove && (
                  <ConfirmButton
                    action="Remove"
                    title="Remove"
                    name={person.name}
                    lead="They lose access immediately. API keys and webhooks that they made keep working: rotate those that they know."
                    yes="Remove"
                    isQuiet
                    send={() => request(`DELETE ${MEMBER}`, memberPlace)}
                    onDone={() => void members.refetch()}
                  />
                )}
              </span>
            </li>
          )
        }}
      </PagedList>
    </Section>
  )
}
