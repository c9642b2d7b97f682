import type { Account } from '../../../access/sign-in/schema.ts'
import { useState } from 'preact/hooks'
import { pickChanges } from '../changes.ts'
import { Field, Form } from '../components/form.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { SignOutButton } from '../components/sign-out-button.tsx'
import { setAccount } from '../session.ts'
import { request } from '../request.ts'

/** The name and e-mail address of the account, with a form to change them. */
export function Profile({ account }: { account: Account }) {
  const { name, email } = account.person
  return (
    <>
      <h1 class="page-title">
        <bdi>{name}</bdi>
      </h1>
      <p class="page-lead">
        <bdi>{email}</bdi>
      </p>
      <div class="actions">
        <InlineForm action="Edit">
          {close => <ProfileForm account={account} onDone={close} />}
        </InlineForm>
        <SignOutButton />
      </div>
    </>
  )
}

function ProfileForm({ account, onDone }: { account: Account; onDone(): void }) {
  // As it was when the form was opened.
  const [person] = useState(account.person)
  return (
    <Form
      action="Save"
      send={value =>
        request(
          'PATCH /api/me',
          pickChanges(person, { name: value('name'), email: value('email') }),
        )
      }
      onDone={edited => {
        setAccount(edited)
        onDone()
      }}
    >
      <Field name="name" label="Your name" autocomplete="name" value={person.name} />
      <Field
        name="email"
        label="E-mail"
        type="email"
        autocomplete="username"
        value={person.email}
        hint="You use it to sign in."
      />
    </Form>
  )
}
