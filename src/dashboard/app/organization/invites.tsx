import { useState } from 'preact/hooks'
import type { Role } from '../../../access/guard/permissions.ts'
import type { Account } from '../../../access/sign-in/schema.ts'
import { ActionButton } from '../components/action-button.tsx'
import { Select } from '../components/fields.tsx'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { Item, Section } from '../components/item.tsx'
import { PagedList, usePages } from '../components/pages.tsx'
import { Moment } from '../components/timestamp.tsx'
import { showToast } from '../components/toast.tsx'
import { request } from '../request.ts'
import { isAtLeast, ROLES } from '../session.ts'
import type { ShownLink } from './link-once.tsx'

type Membership = Account['organizations'][number]

const ROLE_HINTS: Readonly<Record<Role, string>> = {
  viewer: 'Reads everything.',
  member: 'Also acknowledges, answers, and edits channels, rules and heartbeats.',
  admin: 'Also manages keys, webhooks and members.',
  owner: 'Full access.',
}

interface InvitesOptions {
  /** The id of the organization. */
  organization: string
  /** The newest link, after which the list is loaded again. */
  link: ShownLink
}

/** The pending invites, with a button to withdraw each. */
export function Invites({ organization, link }: InvitesOptions) {
  const place = { organizationId: organization }
  const invites = usePages(
    'GET /api/organizations/:organizationId/invites',
    { ...place, limit: 50 },
    { when: link },
  )
  return (
    <Section id="invites" title="Invites">
      <PagedList pages={invites} empty={<p class="note">No pending invites</p>}>
        {({ id, role, email, invitedBy, expiresAt }) => (
          <Item
            key={id}
            title={<bdi>{email ?? 'Anyone with the link'}</bdi>}
            details={[
              <>
                invited by <bdi>{invitedBy}</bdi>
              </>,
              <Moment word="expires" at={expiresAt} />,
            ]}
            badge={role}
          >
            <ActionButton
              action="Withdraw"
              label={`Withdraw the invite for ${email ?? `a ${role}`}`}
              send={() =>
                request('DELETE /api/organizations/:organizationId/invites/:inviteId', {
                  ...place,
                  inviteId: id,
                })
              }
              onDone={() => {
                showToast('Invite withdrawn. Its link no longer works.')
                void invites.refetch()
                if (link.value?.id === id) link.value = undefined
              }}
            />
          </Item>
        )}
      </PagedList>
    </Section>
  )
}

interface InviteFormOptions {
  own: Membership
  link: ShownLink
}

/** The button and the form that invite a member by link. */
export function InviteForm({ own, link }: InviteFormOptions) {
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
        link.value = { ...invite, title: 'Invite link' }
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
