import { useLocation } from 'preact-iso'
import { Field, Form } from '../components/form.tsx'
import { NewPasswordField } from '../components/fields.tsx'
import { useQuery } from '../components/query.tsx'
import { LoadingPage, StandalonePage, ErrorNotice } from '../components/standalone-page.tsx'
import { ProviderButtons, useSignInOptions } from '../openid/provider-buttons.tsx'
import { PATHS, toSignInPath } from '../paths.ts'
import { request } from '../request.ts'
import { linkSecret, parseLinkSecret } from '../link-secret.ts'
import { loadSession, session } from '../session.ts'

/** Accepts an invite, with the signed-in account or with a new one. */
export default function InvitePage() {
  const { route } = useLocation()
  const token = linkSecret.value
  const { data, failure, refetch } = useQuery(token || undefined, () =>
    request('POST /api/invites/look', { token }),
  )
  const options = useSignInOptions()

  async function goOn() {
    linkSecret.value = ''
    await loadSession()
    route(PATHS.home, true)
  }
  const accept = (account?: { name: string; email: string; password: string }) =>
    request('POST /api/invites/accept', { token: linkSecret.value, ...account })

  if (!token) return <Paste />
  if (!data && failure) {
    return (
      <StandalonePage title="Invite">
        <ErrorNotice failure={failure} onRetry={() => void refetch()} />
      </StandalonePage>
    )
  }
  if (!data || !options) return <LoadingPage />
  const { organization, role, invitedBy, email } = data
  const lead = (
    <>
      <bdi>{invitedBy.name}</bdi> invited you to <bdi>{organization.name}</bdi> with the role {role}
      .
    </>
  )
  if (session.value.kind === 'signed_in') {
    const { person } = session.value.account
    return (
      <StandalonePage title={`Join ${organization.name}`} lead={lead}>
        <p data-once>
          You are signed in as <bdi>{person.name}</bdi> (<bdi>{person.email}</bdi>).
        </p>
        <Form action="Join" send={() => accept()} onDone={goOn}>
          {null}
        </Form>
      </StandalonePage>
    )
  }
  return (
    <StandalonePage title={`Join ${organization.name}`} lead={lead}>
      {options.hasPasswords && (
        <Form
          action="Create account and join"
          send={value =>
            accept({
              name: value('name'),
              email: value('email'),
              password: value('password'),
            })
          }
          onDone={goOn}
        >
          <Field name="name" label="Your name" autocomplete="name" />
          <Field
            name="email"
            label="E-mail"
            type="email"
            autocomplete="username"
            value={email ?? ''}
          />
          <NewPasswordField />
        </Form>
      )}
      <ProviderButtons
        options={options}
        next={PATHS.home}
        invite={linkSecret.value}
        onDone={() => void goOn()}
      />
      <p class="note">
        Already have an account? <a href={toSignInPath(PATHS.invite)}>Sign in first</a>, then join.
      </p>
    </StandalonePage>
  )
}

function Paste() {
  return (
    <StandalonePage title="Invite" lead="Open the link that you received, or paste it here.">
      <Form
        action="Continue"
        send={async value => ({ ok: true, data: parseLinkSecret(value('token')) })}
        onDone={secret => {
          linkSecret.value = secret
        }}
      >
        <Field name="token" label="Invite link" />
      </Form>
    </StandalonePage>
  )
}
