import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { SecretLink } from '../components/secret-link.tsx'
import { usePages } from '../components/pages.tsx'
import { isAtLeast } from '../session.ts'
import type { NewInvite } from '../../../access/organizations/schema.ts'
import type { TabOptions } from './general-tab.tsx'
import { InviteForm, Invites } from './invites.tsx'
import { Members, type ShownLink } from './members.tsx'
import { ResetLinks } from './reset-links.tsx'

/** The members of an organization, with its pending invites and reset links. */
export function MembersTab({ account, own }: TabOptions) {
  const [link, setLink] = useState<ShownLink>()
  const members = usePages('GET /api/organizations/:organizationId/members', {
    organizationId: own.id,
    limit: 50,
  })
  const list = (
    <Members account={account} own={own} members={members} link={link} onLink={setLink} />
  )
  return (
    <>
      {isAtLeast(own.role, 'admin') ? (
        <InviteTools account={account} own={own}>
          {list}
        </InviteTools>
      ) : (
        list
      )}
      {own.role === 'owner' && (
        <ResetLinks
          organization={own.id}
          newest={link?.id}
          onWithdrawn={id => {
            if (link?.id === id) setLink(undefined)
          }}
        />
      )}
    </>
  )
}

interface InviteToolsOptions extends TabOptions {
  /** The content between the form and the list. */
  children: ComponentChildren
}

/** The form that invites a member, and the pending invites. */
function InviteTools({ account, own, children }: InviteToolsOptions) {
  const invites = usePages('GET /api/organizations/:organizationId/invites', {
    organizationId: own.id,
    limit: 50,
  })
  const [made, setMade] = useState<NewInvite>()

  function show(invite: NewInvite) {
    setMade(invite)
    const { name: invitedBy } = account.person
    const createdAt = new Date().toISOString()
    invites.changeItems(items => [{ ...invite, invitedBy, createdAt }, ...items])
  }

  return (
    <>
      <div class="primary-action">
        <InviteForm own={own} onCreated={show} />
        {made && <SecretLink {...made} label="Invite link" onClose={() => setMade(undefined)} />}
      </div>
      {children}
      <Invites
        own={own}
        invites={invites}
        onWithdrawn={id => {
          if (made?.id === id) setMade(undefined)
        }}
      />
    </>
  )
}
