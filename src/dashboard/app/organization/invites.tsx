import type { Account } from '../../../accounts/schema.ts'
import { Select } from '../components/fields.tsx'
import { Field, Form } from '../components/form.tsx'
import { PagedList } from '../components/paged-list.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { showToast } from '../components/toast.tsx'
import { t, toRich } from '../locales/translate.tsx'
import { isAtLeast, ROLES } from '../session.ts'
import type { Pages } from '../components/use-pages.ts'
import { withVerification } from '../components/verification-prompt.tsx'
import { createInvite, withdrawInvite, type Invite, type NewInvite } from './api.ts'

type Membership = Account['organizations'][number]

interface InvitesOptions {
  own: Membership
  invites: Pages<Invite>
  onWithdrawn(id: string): void
}

/** The pending invitations, with a button to withdraw each. */
export function Invites({ own, invites, onWithdrawn }: InvitesOptions) {
  async function withdraw(id: string) {
    const result = await withdrawInvite(own.id, id)
    if (!result.ok) return showToast({ message: result.failure.message })
    invites.change(items => items.filter(one => one.id !== id))
    onWithdrawn(id)
    showToast({ message: t('organization.inviteWithdrawn') })
  }

  return (
    <section class="section" aria-labelledby="invites">
      <h2 id="invites">{t('organization.invites')}</h2>
      <PagedList pages={invites} empty={<p class="note">{t('organization.noInvites')}</p>}>
        {({ id, role, email, invitedBy, expiresAt }) => (
          <li key={id}>
            <div class="item-main">
              <bdi>{email ?? t('organization.anyone')}</bdi>
              <p class="item-details">
                {toRich({
                  key: 'organization.inviteBy',
                  values: {
                    name: <bdi>{invitedBy}</bdi>,
                    time: <Timestamp atMs={Date.parse(expiresAt)} hasDate />,
                  },
                })}
              </p>
            </div>
            <span class="badge">{t(`words.role.${role}`)}</span>
            <span class="item-actions">
              <button
                type="button"
                class="quiet-button"
                aria-label={
                  email === null
                    ? t('organization.withdrawInviteRole', { role: t(`words.role.${role}`) })
                    : t('organization.withdrawInvite', { email })
                }
                onClick={() => withdraw(id)}
              >
                {t('words.withdraw')}
              </button>
            </span>
          </li>
        )}
      </PagedList>
    </section>
  )
}

interface InviteFormOptions {
  own: Membership
  onCreated(invite: NewInvite): void
}

/** The button and the form that invite a member by link. */
export function InviteForm({ own, onCreated }: InviteFormOptions) {
  return (
    <InlineForm isPrimary action={t('organization.invite')}>
      {close => (
        <Form
          action={t('organization.createLink')}
          send={value =>
            withVerification(() =>
              createInvite(own.id, { role: value('role'), email: value('email') || null }),
            )
          }
          onDone={invite => {
            close()
            onCreated(invite)
          }}
        >
          <Select
            name="role"
            label={t('words.role')}
            value="member"
            options={ROLES.filter(role => isAtLeast(own.role, role)).map(role => ({
              value: role,
              text: t(`organization.${role}Does`),
            }))}
          />
          <Field
            name="email"
            label={t('organization.emailOptional')}
            type="email"
            autocomplete="off"
            hint={t('organization.emailHint')}
            isOptional
          />
        </Form>
      )}
    </InlineForm>
  )
}
