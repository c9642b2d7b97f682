import { Passkeys } from '../account/passkeys.tsx'
import { Password } from '../account/password.tsx'
import { SecondFactor } from '../account/second-factor.tsx'
import { Sessions } from '../account/sessions.tsx'
import { Layout } from '../components/layout.tsx'
import { Item, Section } from '../components/item.tsx'
import { usePages } from '../components/pages.tsx'
import { Connections } from '../openid/connections.tsx'
import { PATHS, toOrganizationPath } from '../paths.ts'
import { Tokens } from '../tokens/tokens.tsx'
import type { AccountPageProps } from './props.ts'
import type { Account } from '../../../access/sign-in/schema.ts'
import { CreateOrganization } from '../organization/create-organization.tsx'
import { accountId, request, type Result } from '../request.ts'
import { ActionButton } from '../components/action-button.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { clearSession, setAccount } from '../session.ts'
import { useState } from 'preact/hooks'
import { Field, Form } from '../components/form.tsx'
import { pickChanges } from '../changes.ts'
import { InlineForm } from '../components/inline-form.tsx'
import { SignOutButton } from '../components/buttons.tsx'

/** The account: its profile, ways to sign in, sessions and organizations. */
export default function AccountPage({ account }: AccountPageProps) {
  const sessions = usePages('GET /api/sessions', { limit: 20 })
  return (
    <Layout account={account} path={PATHS.account} title="Account">
      <div class="settings">
        <Profile account={account} />
        <Passkeys onChange={sessions.refresh} />
        <Password account={account} onChange={sessions.refresh} />
        <SecondFactor account={account} />
        <Connections />
        <Sessions sessions={sessions} />
        <Tokens
          owner="account"
          lead="Programs use a personal token to manage your organizations with the API."
          organizations={account.organizations}
        />
        <Organizations account={account} />
        <AccountData />
      </div>
    </Layout>
  )
}

/** The organizations of the account. Operators can create another one. */
function Organizations({ account: { person, organizations } }: { account: Account }) {
  return (
    <Section id="organizations" title="Organizations">
      {organizations.length === 0 && <p class="note">You are not a member of any organization.</p>}
      <ul class="items">
        {organizations.map(({ id, name, role }) => (
          <Item
            key={id}
            title={
              <a href={toOrganizationPath(id)}>
                <bdi>{name}</bdi>
              </a>
            }
            badge={role}
          />
        ))}
      </ul>
      {person.isOperator && <CreateOrganization />}
    </Section>
  )
}

/** Returns the file. A refusal is requested again, in the form of the other requests. */
async function readExport(): Promise<Result<Blob>> {
  const headers = { 'X-Account': accountId }
  const response = await fetch('/api/me/export', { headers }).catch(() => undefined)
  return response?.ok ? { ok: true, data: await response.blob() } : request('GET /api/me/export')
}

/** The export of the account's own data, and its deletion. */
function AccountData() {
  return (
    <Section id="data" title="Your data">
      <p class="note">
        The file has everything that this server stores about your account, without secrets.
      </p>
      <div class="actions">
        <ActionButton
          action="Export your data"
          send={readExport}
          onDone={file => {
            const href = URL.createObjectURL(file)
            Object.assign(document.createElement('a'), {
              href,
              download: 'tidings-account.json',
            }).click()
          }}
        />
        <ConfirmButton
          action="Delete account"
          title="Delete your account?"
          lead="You are signed out everywhere and leave every organization. Audit logs keep your name for a year. This cannot be undone."
          yes="Delete permanently"
          send={() => request('DELETE /api/me')}
          onDone={() => {
            clearSession()
            showToast('Your account is deleted.')
          }}
        />
      </div>
    </Section>
  )
}

/** The name and e-mail address of the account, with a form to change them. */
function Profile({ account }: { account: Account }) {
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
