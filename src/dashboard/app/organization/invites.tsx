import { Details } from '../components/details.tsx'
import { useState } from 'preact/hooks'
import type { Role } from '../../../access/guard/permissions.ts'
import type { Invite, NewInvite } from '../../../access/organizations/schema.ts'
import type { Account } from '../../../access/sign-in/schema.ts'
import { Select } from '../components/fields.tsx'
import { Field } from '../components/form.tsx'
import { PagedList, type Pages } from '../components/pages.tsx'
import { Moment } from '../components/timestamp.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { showResult } from '../components/toast.tsx'
import { isAtLeast, ROLES } from '../session.ts'
import { request } from '../request.ts'
import { QuietButton } from '../components/quiet-button.tsx'
import { Section } from '../components/section.tsx'

type Membership = Account['organizations'][number]

const ROLE_HINTS: Readonly<Record<Role, string>> = {
  viewer: 'Reads everything.',
  member: 'Also edits channels and aliases.',
  admin: 'Also manages keys, webhooks and members.',
  owner: 'Full access.',
}

interface InvitesOptions {
  own: Membership
  invites: Pages<Invite>
  onWithdrawn(id: string): void
}

/** The pending invites, with a button to withdraw each. */
export function Invites({ own, invites, onWithdrawn }: InvitesOptions) {
  async function withdraw(id: string) {
    const result = await request('DELETE /api/organizations/:organizationId/invites/:inviteId', {
      organizationId: own.id,
      inviteId: id,
    })
    if (!showResult(result, 'Invite withdrawn. Its link no longer works.')) return
    invites.changeItems(items => items.filter(one => one.id !== id))
    onWithdrawn(id)
  }

  return (
    <Section id="invites" title="Invites">
      <PagedList pages={invites} empty={<p class="note">No pending invites</p>}>
        {({ id, role, email, invitedBy, expiresAt }) => (
          <li key={id}>
            <div class="item-main">
              <bdi>{email ?? 'Anyone with the link'}</bdi>
              <Details>
                <>
                  invited by <bdi>{invitedBy}</bdi>
                </>
                <>
                  expires <Moment at={expiresAt} />
                </>
              </Details>
            </div>
            <span class="badge">{role}</span>
            <span class="item-actions">
              <QuietButton
                aria-label={
                  email === null
                    ? `Withdraw the invite for a ${role}`
                    : `Withdraw the invite for ${email}`
                }
                onClick={() => withdraw(id)}
              >
                Withdraw
              </QuietButton>
            </span>
          </li>
        )}
      </PagedList>
    </Section>
  )
}

interface InviteFormOptions {
  own: Membership
  onCreated(invite: NewInvite): void
}

/** The button and the form that invite a member by link. */
export function InviteForm({ own, onCreated }: InviteFormOptions) {
  return (
    <FormButton
      isPrimary
      action="Invite a member"
      submit="Create link"
      send={value =>
        request('POST /api/organizations/:organizationId/invites', {
          organizationId: own.id,
          role: value('role') as Role,
          email: value('email') || null,
        })
      }
      onDone={invite => {
        onCreated(invite)
      }}
    >
      <RoleSelect own={own} />
      <Field
        name="email"
        label="E-mail (optional)"
        type="email"
        hint="No e-mail is sent. With an address, only that person can use the link."
        isOptional
      />
    </FormButton>
  )
}

/** The role of an invite. The hint describes the chosen one, because options are cut on a phone. */
function RoleSelect({ own }: { own: Membership }) {
  const [role, setRole] = useState<Role>('member')
  const roles = ROLES.filter(one => isAtLeast(own.role, one))
  return (
    <Select
      name="role"
      label="Role"
      value={role}
      hint={ROLE_HINTS[role]}
      options={roles.map(one => ({ value: one, text: one }))}
      onChange={value => setRole(roles.find(one => one === value) ?? role)}
    />
  )
}
