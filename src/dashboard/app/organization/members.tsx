import type { Role } from '../../../accounts/permissions.ts'
import type { Account } from '../../../accounts/schema.ts'
import { withVerification } from '../components/verification-prompt.tsx'
import { PagedList } from '../components/paged-list.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { SecretLink } from '../components/secret-link.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { t, toRich } from '../locales/translate.tsx'
import { ROLES } from '../session.ts'
import type { Pages } from '../components/use-pages.ts'
import { changeRole, createResetLink, removeMember, type Member, type NewResetLink } from './api.ts'

/** A reset link that was just created, and the id of its member. */
export interface ShownLink extends NewResetLink {
  person: string
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
    members.change(items => items.map(one => (one.person.id === changed.person.id ? changed : one)))
  }

  /** Changes a role and returns whether it worked. */
  async function choose({ person, role: before }: Member, role: Role): Promise<boolean> {
    const result = await withVerification(() => changeRole(own.id, person.id, role))
    if (!result.ok) {
      showToast({ message: result.failure.message })
      return false
    }
    show(result.data)
    showToast({
      message: t('organization.roleChanged', { name: person.name, role: t(`words.role.${role}`) }),
      async undo() {
        const undone = await withVerification(() => changeRole(own.id, person.id, before))
        if (undone.ok) show(undone.data)
        return undone
      },
    })
    return true
  }

  async function makeLink({ person }: Member) {
    const result = await withVerification(() => createResetLink(own.id, person.id))
    if (result.ok) onLink({ ...result.data, person: person.id })
    else showToast({ message: result.failure.message })
  }

  return (
    <section class="section" aria-labelledby="members">
      <h2 id="members">{t('organization.members')}</h2>
      <PagedList pages={members} empty={null}>
        {member => {
          const { person, role, lastSeenAt } = member
          const isSelf = person.id === account.person.id
          const isOwner = own.role === 'owner' && !isSelf
          const mayRemove = isOwner || (own.role === 'admin' && !isSelf && role !== 'owner')
          return (
            <li key={person.id}>
              <div class="item-main">
                <bdi>{person.name}</bdi>{' '}
                {isSelf && <span class="badge badge-good">{t('organization.you')}</span>}
                <p class="item-details">
                  {lastSeenAt === null ? (
                    <bdi>{person.email}</bdi>
                  ) : (
                    toRich({
                      key: 'organization.memberSeen',
                      values: {
                        email: <bdi>{person.email}</bdi>,
                        time: <Timestamp atMs={Date.parse(lastSeenAt)} hasDate />,
                      },
                    })
                  )}
                </p>
              </div>
              {isOwner ? (
                <span class="input">
                  <select
                    aria-label={t('organization.roleOf', { name: person.name })}
                    value={role}
                    onChange={async ({ currentTarget }) => {
                      const wanted = ROLES.find(one => one === currentTarget.value)
                      if (!wanted || !(await choose(member, wanted))) currentTarget.value = role
                    }}
                  >
                    {ROLES.map(one => (
                      <option key={one} value={one}>
                        {t(`words.role.${one}`)}
                      </option>
                    ))}
                  </select>
                </span>
              ) : (
                <span class="badge">{t(`words.role.${role}`)}</span>
              )}
              <span class="item-actions">
                {isOwner && (
                  <button
                    type="button"
                    class="quiet-button"
                    aria-label={t('organization.createResetLinkFor', { name: person.name })}
                    onClick={() => makeLink(member)}
                  >
                    {t('organization.createResetLink')}
                  </button>
                )}
                {mayRemove && (
                  <ConfirmButton
                    action={t('words.remove')}
                    title={toRich({
                      key: 'words.removeName',
                      values: { name: <bdi>{person.name}</bdi> },
                    })}
                    lead={t('organization.removeLead')}
                    yes={t('words.remove')}
                    isQuiet
                    send={() => removeMember(own.id, person.id)}
                    onDone={() =>
                      members.change(items => items.filter(one => one.person.id !== person.id))
                    }
                  />
                )}
              </span>
              {link?.person === person.id && (
                <SecretLink
                  {...link}
                  label={t('organization.passwordResetLink')}
                  onClose={() => onLink(undefined)}
                />
              )}
            </li>
          )
        }}
      </PagedList>
    </section>
  )
}
