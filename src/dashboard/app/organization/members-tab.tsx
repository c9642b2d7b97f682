import { useState } from 'preact/hooks'
import { isAtLeast } from '../session.ts'
import type { TabOptions } from './general-tab.tsx'
import { InviteForm, Invites } from './invites.tsx'
import { LinkOnce, type NewLink } from './link-once.tsx'
import { Members } from './members.tsx'
import { ResetLinks } from './reset-links.tsx'

/** The members of an organization, with its pending invites and reset links. */
export function MembersTab({ account, own }: TabOptions) {
  const [link, setLink] = useState<NewLink>()
  const isAdmin = isAtLeast(own.role, 'admin')
  const hide = (id: string) => setLink(shown => (shown?.id === id ? undefined : shown))
  // The lists of links are loaded again with each new one.
  return (
    <>
      {isAdmin && (
        <div class="primary-action">
          <InviteForm own={own} onCreated={setLink} />
        </div>
      )}
      {link && <LinkOnce link={link} onDone={() => setLink(undefined)} />}
      <Members account={account} own={own} onLink={setLink} />
      {isAdmin && <Invites key={`invites ${link?.id}`} organization={own.id} onWithdrawn={hide} />}
      {own.role === 'owner' && (
        <ResetLinks key={`resets ${link?.id}`} organization={own.id} onWithdrawn={hide} />
      )}
    </>
  )
}
