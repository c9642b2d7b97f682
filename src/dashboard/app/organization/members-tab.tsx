import { useSignal } from '@preact/signals'
import { isAtLeast } from '../session.ts'
import type { TabOptions } from './general-tab.tsx'
import { InviteForm, Invites } from './invites.tsx'
import { LinkOnce, type NewLink } from './link-once.tsx'
import { Members } from './members.tsx'
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
