import { useState } from 'preact/hooks'
import type { Account } from '../../../accounts/schema.ts'
import { Choice } from '../parts/fields.tsx'
import { Field, Form } from '../parts/form.tsx'
import { Listed } from '../parts/listed.tsx'
import { Moment } from '../parts/moment.tsx'
import { OnceLink } from '../parts/once-link.tsx'
import { Reveal } from '../parts/reveal.tsx'
import { tell } from '../parts/undo.tsx'
import { isAtLeast, ROLES } from '../session.ts'
import { usePages } from '../users/use-pages.ts'
import { createInvite, readInvites, withdrawInvite, type NewInvite } from './calls.ts'

interface InvitesOptions {
  account: Account
  own: Account['organizations'][number]
}

const MAY = {
  viewer: 'viewer: reads everything',
  member: 'member: also changes channels and aliases',
  admin: 'admin: also keys, webhooks, members, deletion',
  owner: 'owner: everything',
}

/** Invitations by link: made, handed over by hand, and taken back. */
export function Invites({ account, own }: InvitesOptions) {
  const invites = usePages(own.id, cursor => readInvites(own.id, cursor))
  const [made, setMade] = useState<NewInvite>()

  async function withdraw(id: string) {
    const answer = await withdrawInvite(own.id, id)
    if (!answer.ok) return tell({ said: answer.failure.message })
    invites.change(items => items.filter(one => one.id !== id))
    if (made?.id === id) setMade(undefined)
    tell({ said: 'The invitation is withdrawn: its link leads nowhere.' })
  }

  return (
    <section class="part" aria-labelledby="invites">
      <h2 id="invites">Invitations</h2>
      <Listed pages={invites} nothing={<p class="aside">None is open.</p>}>
        {({ id, role, email, invitedBy, expiresAt }) => (
          <li key={id}>
            <div class="item-what">
              <bdi>{email ?? 'Whoever has the link'}</bdi>
              <p class="item-about">
                from <bdi>{invitedBy}</bdi> · until <Moment atMs={Date.parse(expiresAt)} isFar />
              </p>
            </div>
            <span class="badge">{role}</span>
            <span class="item-acts">
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
              <OnceLink {...made} label="Invitation link" onClose={() => setMade(undefined)} />
            )}
          </li>
        )}
      </Listed>
      <Reveal action="Invite somebody">
        {close => (
          <Form
            action="Make a link"
            send={value =>
              createInvite(own.id, { role: value('role'), email: value('email') || null })
            }
            onDone={invite => {
              close()
              setMade(invite)
              const { name: invitedBy } = account.person
              const createdAt = new Date().toISOString()
              invites.change(items => [{ ...invite, invitedBy, createdAt }, ...items])
            }}
          >
            <Choice
              name="role"
              label="Role"
              value="member"
              options={ROLES.filter(role => isAtLeast(own.role, role)).map(role => ({
                value: role,
                text: MAY[role],
              }))}
            />
            <Field
              name="email"
              label="E-mail (optional)"
              type="email"
              autocomplete="off"
              hint="Nothing is sent. With an address here, nobody else can use the link."
              isOptional
            />
          </Form>
        )}
      </Reveal>
    </section>
  )
}
