import { useState } from 'preact/hooks'
import { changePassword, editAccount } from '../account/calls.ts'
import { Sessions } from '../account/sessions.tsx'
import type { AccountPage } from './props.ts'
import { NewOrganization } from '../organization/new.tsx'
import { confirmed } from '../parts/confirm.tsx'
import { Field, Form } from '../parts/form.tsx'
import { SettingsFrame } from '../parts/frame.tsx'
import { NewPassword } from '../parts/new-password.tsx'
import { Reveal } from '../parts/reveal.tsx'
import { SignOut } from '../parts/sign-out.tsx'
import { tell } from '../parts/undo.tsx'
import { PATHS, toOrganizationPath } from '../paths.ts'
import { takeSession } from '../session.ts'

/** Who somebody is here, how they sign in, and where they are signed in. */
export default function AccountPage({ account }: AccountPage) {
  const { person, organizations } = account
  // A new password ends sessions.
  const [turn, setTurn] = useState(0)
  return (
    <SettingsFrame account={account} path={PATHS.account} title="Account">
      <div class="settings">
        <h1 class="page-title">
          <bdi>{person.name}</bdi>
        </h1>
        <p class="lead-in">
          <bdi>{person.email}</bdi>
        </p>
        <div class="acts">
          <Reveal action="Edit">{close => <Profile account={account} onDone={close} />}</Reveal>
          <Reveal action="Change password">
            {close => (
              <Password
                onDone={() => {
                  setTurn(turn + 1)
                  close()
                }}
              />
            )}
          </Reveal>
          <SignOut />
        </div>
        <Sessions key={turn} />
        <section class="part" aria-labelledby="organizations">
          <h2 id="organizations">Organizations</h2>
          {organizations.length === 0 && <p class="aside">You belong to none.</p>}
          <ul class="items">
            {organizations.map(({ id, name, role }) => (
              <li key={id}>
                <div class="item-what">
                  <a href={toOrganizationPath(id)}>
                    <bdi>{name}</bdi>
                  </a>
                </div>
                <span class="badge">{role}</span>
              </li>
            ))}
          </ul>
          {person.isOperator && <NewOrganization />}
        </section>
      </div>
    </SettingsFrame>
  )
}

function Profile({ account, onDone }: Pick<AccountPage, 'account'> & { onDone(): void }) {
  const { name, email } = account.person
  return (
    <Form
      action="Save"
      send={value => confirmed(() => editAccount({ name: value('name'), email: value('email') }))}
      onDone={edited => {
        takeSession(edited)
        onDone()
      }}
    >
      <Field name="name" label="Your name" autocomplete="name" value={name} />
      <Field
        name="email"
        label="E-mail"
        type="email"
        autocomplete="username"
        value={email}
        hint="You sign in with it."
      />
    </Form>
  )
}

function Password({ onDone }: { onDone(): void }) {
  return (
    <Form
      action="Change password"
      send={value =>
        changePassword({
          currentPassword: value('currentPassword'),
          newPassword: value('newPassword'),
        })
      }
      onDone={({ sessionsEnded }) => {
        tell({ said: `The password is changed. Signed out elsewhere: ${sessionsEnded}.` })
        onDone()
      }}
    >
      <p class="hint">Every other browser is signed out; you stay signed in here.</p>
      <Field
        name="currentPassword"
        label="Current password"
        type="password"
        autocomplete="current-password"
      />
      <NewPassword name="newPassword" label="New password" />
    </Form>
  )
}
