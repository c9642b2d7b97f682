import { Details } from '../components/details.tsx'
import type { Role } from '../../../access/guard/permissions.ts'
import type { Member } from '../../../access/organizations/schema.ts'
import type { Account, NewResetLink } from '../../../access/sign-in/schema.ts'
import { withVerification } from '../components/verification.ts'
import { PagedList, type Pages } from '../components/pages.tsx'
import { Moment } from '../components/timestamp.tsx'
import { SecretLink } from '../components/secret-link.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showResult } from '../components/toast.tsx'
import { ROLES } from '../session.ts'
import { request } from '../request.ts'
import { QuietButton } from '../components/quiet-button.tsx'
import { Section } from '../components/section.tsx'

const MEMBER = '/api/organizations/:organizationId/members/:accountId'

/** A reset link that was just created, and the id of its member. */
export interface ShownLink extends NewResetLink {
  member: string
}

interface MembersOptions {
  account: Account
  own: Account['organizations'][number]
  members: Pages<Member>
  /** The reset link to show, if there is one. */
  link: ShownLink | undefined
  onLink(link: ShownLink | undefined): void
}

/** The members of an organization, with the actions of its admins and owners. */
export function Members({ account, own, members, link, onLink }: MembersOptions) {
  function show(changed: Member) {
    members.changeItems(items =>
      items.map(one => (one.person.id === changed.person.id ? changed : one)),
    )
  }

  const toPlace = ({ person }: Member) => ({ organizationId: own.id, accountId: person.id })

  async function changeRole(member: Member, role: Role) {
    const result = await withVerification(() =>
      request(`PATCH ${MEMBER}`, { ...toPlace(member), role }),
    )
    if (result.ok) show(result.data)
    return result
  }

  /** Changes a role and returns whether it worked. */
  async function choose(member: Member, role: Role): Promise<boolean> {
    return showResult(await changeRole(member, role), {
      message: `${member.person.name} now has the role ${role}.`,
      undo: () => changeRole(member, member.role),
    })
  }

  async function makeLink(member: Member) {
    const result = await withVerification(() =>
      request(`POST ${MEMBER}/reset-link`, toPlace(member)),
    )
    if (showResult(result)) onLink({ ...result.data, member: member.person.id })
  }

  return (
    <Section id="members" title="Members">
      <PagedList pages={members} empty={null}>
        {member => {
          const { person, role, lastSeenAt } = member
          const isSelf = person.id === account.person.id
          const isOwner = own.role === 'owner' && !isSelf
          const mayRemove = isOwner || (own.role === 'admin' && !isSelf && role !== 'owner')
          return (
            <li key={person.id}>
              <div class="item-main">
                <bdi>{person.name}</bdi> {isSelf && <span class="badge badge-good">You</span>}
                <Details>
                  <bdi>{person.email}</bdi>
                  {lastSeenAt !== null && (
                    <>
                      last seen <Moment at={lastSeenAt} />
                    </>
                  )}
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
                  <QuietButton
                    aria-label={`Create password-reset link for ${person.name}`}
                    onClick={() => makeLink(member)}
                  >
                    Create password-reset link
                  </QuietButton>
                )}
                {mayRemove && (
                  <ConfirmButton
                    action="Remove"
                    title="Remove"
                    name={person.name}
                    lead="They lose access immediately. API keys and webhooks that they made keep working: rotate those that they know."
                    yes="Remove"
                    isQuiet
                    send={() => request(`DELETE ${MEMBER}`, toPlace(member))}
                    onDone={() =>
                      members.changeItems(items => items.filter(one => one.person.id !== person.id))
                    }
                  />
                )}
              </span>
              {link?.member === person.id && (
                <SecretLink
                  {...link}
                  label="Password-reset link"
                  onClose={() => onLink(undefined)}
                />
              )}
            </li>
          )
        }}
      </PagedList>
    </Section>
  )
}
