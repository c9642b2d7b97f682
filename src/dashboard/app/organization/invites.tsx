import { useState } from 'preact/hooks'
import type { Account } from '../../../accounts/schema.ts'
import { Select } from '../components/fields.tsx'
import { Field, Form } from '../components/form.tsx'
import { PagedList } from '../components/paged-list.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { SecretLink } from '../components/secret-link.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { showToast } from '../components/toast.tsx'
import { isAtLeast, ROLES } from '../session.ts'
import { usePages } from '../components/use-pages.ts'
import { withVerification } from '../components/verification-prompt.tsx'
import { createInvite, readInvites, withdrawInvite, type NewInvite } from './api.ts'

interface InvitesOptions {
  account: Account
  own: Account['organizations'][number]
}

const ROLE_LABELS = {
  viewer: 'viewer: reads everything',
  member: 'member: also edits channels and aliases',
  admin: 'admin: also manages keys, webhooks and members',
  owner: 'owner: can do everything',
}

/** The open invitations, with actions to create and withdraw them. */
export function Invites({ account, own }: InvitesOptions) {
  const invites = usePages(own.id, cursor => readInvites(own.id, cursor))
  const [made, setMade] = useState<NewInvite>()

  async function withdraw(id: string) {
    const result = await withdrawInvite(own.id, id)
    if (!result.ok) return showToast({ message: result.failure.message })
    invites.change(items => items.filter(one => one.id !== id))
    if (made?.id === id) setMade(undefined)
    showToast({ message: 'Invitation withdrawn. Its link no longer works.' })
  }

  return (
    <section class="section" aria-labelledby="invites">
      <h2 id="invites">Invitations</h2>
      <PagedList pages={invites} empty={<p class="note">No open invitations</p>}>
        {({ id, role, email, invitedBy, expiresAt }) => (
          <li key={id}>
            <div class="item-main">
              <bdi>{email ?? 'Anyone with the link'}</bdi>
              <p class="item-details">
                invited by <bdi>{invitedBy}</bdi> · expires{' '}
                <Timestamp atMs={Date.parse(expiresAt)} hasDate />
              </p>
            </div>
            <span class="badge">{role}</span>
            <span class="item-actions">
              <button
                type="button"
                class="quiet-button"
                aria-label={`Withdraw the invitation for ${email ?? `a ${role}`}`}
                onClick={() => withdraw(id)}
              >
                Withdraw
              </button>
            </span>
            {made?.id === id && (
              <SecretLink {...made} label="Invitation link" onClose={() => setMade(undefined)} />
            )}
          </li>
        )}
      </PagedList>
      <InlineForm action="Invite a member">
        {close => (
          <Form
            action="Create link"
            send={value =>
              withVerification(() =>
                createInvite(own.id, { role: value('role'), email: value('email') || null }),
              )
            }
            onDone={invite => {
              close()
              setMade(invite)
              const { name: invitedBy } = account.person
              const createdAt = new Date().toISOString()
              invites.change(items => [{ ...invite, invitedBy, createdAt }, ...items])
            }}
          >
            <Select
              name="role"
              label="Role"
              value="member"
              options={ROLES.filter(role => isAtLeast(own.role, role)).map(role => ({
                value: role,
                text: ROLE_LABELS[role],
              }))}
            />
            <Field
              name="email"
              label="E-mail (optional)"
              type="email"
              autocomplete="off"
              hint="No e-mail is sent. With an address, only that person can use the link."
              isOptional
            />
          </Form>
        )}
      </InlineForm>
    </section>
  )
}
