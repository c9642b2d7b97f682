import { useState } from 'preact/hooks'
import { changePassword, editAccount } from '../account/api.ts'
import { Sessions } from '../account/sessions.tsx'
import type { AccountPageProps } from './props.ts'
import { CreateOrganization } from '../organization/create-organization.tsx'
import { withPasswordPrompt } from '../components/password-prompt.tsx'
import { Field, Form } from '../components/form.tsx'
import { SettingsLayout } from '../components/layout.tsx'
import { NewPasswordField } from '../components/new-password-field.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { SignOutButton } from '../components/sign-out-button.tsx'
import { showToast } from '../components/toast.tsx'
import { PATHS, toOrganizationPath } from '../paths.ts'
import { setAccount } from '../session.ts'

/** The account: its profile, password, sessions and organizations. */
export default function AccountPage({ account }: AccountPageProps) {
  const { person, organizations } = account
  // Reloads the sessions, because a new password ends the others.
  const [passwordChanges, setPasswordChanges] = useState(0)
  return (
    <SettingsLayout account={account} path={PATHS.account} title="Account">
      <div class="settings">
        <h1 class="page-title">
          <bdi>{person.name}</bdi>
        </h1>
        <p class="page-lead">
          <bdi>{person.email}</bdi>
        </p>
        <div class="actions">
          <InlineForm action="Edit">
            {close => <Profile account={account} onDone={close} />}
          </InlineForm>
          <InlineForm action="Change password">
            {close => (
              <Password
                onDone={() => {
                  setPasswordChanges(passwordChanges + 1)
                  close()
                }}
              />
            )}
          </InlineForm>
          <SignOutButton />
        </div>
        <Sessions key={passwordChanges} />
        <section class="section" aria-labelledby="organizations">
          <h2 id="organizations">Organizations</h2>
          {organizations.length === 0 && (
            <p class="note">You are not a member of any organization.</p>
          )}
          <ul class="items">
            {organizations.map(({ id, name, role }) => (
              <li key={id}>
                <div class="item-main">
                  <a href={toOrganizationPath(id)}>
                    <bdi>{name}</bdi>
                  </a>
                </div>
                <span class="badge">{role}</span>
              </li>
            ))}
          </ul>
          {person.isOperator && <CreateOrganization />}
        </section>
      </div>
    </SettingsLayout>
  )
}

function Profile({ account, onDone }: Pick<AccountPageProps, 'account'> & { onDone(): void }) {
  const { name, email } = account.person
  return (
    <Form
      action="Save"
      send={value =>
        withPasswordPrompt(() => editAccount({ name: value('name'), email: value('email') }))
      }
      onDone={edited => {
        setAccount(edited)
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
        hint="You use it to sign in."
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
        showToast({ message: `Password changed. Other sessions ended: ${sessionsEnded}.` })
        onDone()
      }}
    >
      <p class="hint">You are signed out in all other browsers and stay signed in here.</p>
      <Field
        name="currentPassword"
        label="Current password"
        type="password"
        autocomplete="current-password"
      />
      <NewPasswordField name="newPassword" label="New password" />
    </Form>
  )
}
