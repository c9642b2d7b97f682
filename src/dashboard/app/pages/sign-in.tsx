import { useLocation } from 'preact-iso'
import { useEffect, useState } from 'preact/hooks'
import { LoadingPage, StandalonePage } from '../components/standalone-page.tsx'
import { ProviderButtons } from '../openid/provider-buttons.tsx'
import { useSignInOptions } from '../openid/use-sign-in-options.ts'
import { VisitProblem } from '../openid/visit-problem.tsx'
import { showResult, showToast } from '../components/toast.tsx'
import { PATHS, toSafeNext } from '../paths.ts'
import { request } from '../request.ts'
import { loadSession, session, checkCookie, isInstalled, setAccount } from '../session.ts'
import { PasskeyButton } from '../sign-in/passkey-button.tsx'
import { CodeField } from '../components/code-field.tsx'
import { Field, Form } from '../components/form.tsx'
import { QuietButton } from '../components/quiet-button.tsx'

/** Signs in and redirects to the requested page. */
export default function SignIn() {
  const { query, route } = useLocation()
  const options = useSignInOptions()
  const next = toSafeNext(query['next'])
  const isSignedIn = session.value.kind === 'signed_in'

  // Browsers log the failed request for an account that nobody has signed in to.
  useEffect(() => {
    if (options?.isSignedIn) void loadSession()
  }, [options])
  // Other pages need to know it.
  useEffect(() => () => void (session.value.kind === 'unknown' && loadSession()), [])
  useEffect(() => {
    if (!isSignedIn) return
    if (options?.confirmation) void connect()
    route(next, true)
  }, [isSignedIn, next])

  if (!options || (options.isSignedIn && session.value.kind === 'unknown')) return <LoadingPage />
  if (!options.hasOwner) {
    return (
      <StandalonePage
        title="Set up this server first"
        lead="This server has no owner yet, so nobody can sign in."
      >
        <p>
          The server printed a setup link when it started. Open the link to create the first
          account. A restart prints a new link.
        </p>
        <p>
          <a href={PATHS.setup}>I have the link</a>
        </p>
      </StandalonePage>
    )
  }
  return (
    <StandalonePage title="Sign in">
      <VisitProblem query={query} providers={options.providers} />
      {options.confirmation && (
        <p class="notice notice-info" role="status">
          An account has the e-mail address <bdi>{options.confirmation.email}</bdi>. Sign in to it
          once more, with its passkey or code if it has one, and it is connected to{' '}
          <bdi>{options.confirmation.label}</bdi>.
        </p>
      )}
      {options.hasPasswords && (
        <>
          <PasswordForm />
          <PasskeyButton />
          <p class="note">
            Forgot your password? Ask an owner of your organization for a reset link.
          </p>
        </>
      )}
      {!options.hasPasswords && <PasskeyButton />}
      <ProviderButtons options={options} next={next} />
      {!options.hasPasswords && (
        <details>
          <summary>Sign in with an owner’s password</summary>
          <p class="note">
            Passwords are off on this server. Only those that were set on its machine work.
          </p>
          <PasswordForm />
        </details>
      )}
    </StandalonePage>
  )
}

/** Connects the account that has just signed in with the identity that waits in this browser. */
async function connect(): Promise<void> {
  const result = await request('POST /api/openid/confirmation')
  if (showResult(result)) showToast(`Your account is connected to ${result.data.label}.`)
}

/** Signs in with an e-mail address and a password, and with a code if the account requires one. */
function PasswordForm() {
  const [needsCode, setNeedsCode] = useState(false)
  if (needsCode) return <CodeForm onCancel={() => setNeedsCode(false)} />
  return (
    <Form
      key="password"
      action="Sign in"
      send={async value => {
        const result = await request('POST /api/session', {
          email: value('email'),
          password: value('password'),
          isInstalled: isInstalled(),
        })
        return result.ok && !('needs' in result.data)
          ? checkCookie({ ok: true, data: result.data })
          : result
      }}
      onDone={data => ('needs' in data ? setNeedsCode(true) : setAccount(data))}
    >
      <Field name="email" label="E-mail" type="email" autocomplete="username webauthn" />
      <Field name="password" label="Password" type="password" autocomplete="current-password" />
    </Form>
  )
}

function CodeForm({ onCancel }: { onCancel(): void }) {
  return (
    <>
      <Form
        key="code"
        action="Sign in"
        send={value => request('POST /api/session/code', { code: value('code') })}
        onDone={setAccount}
      >
        <CodeField
          label="Code"
          hint="The six digits of your authenticator app, or one of your recovery codes."
        />
      </Form>
      <p class="note">
        <QuietButton onClick={onCancel}>Back</QuietButton>
      </p>
    </>
  )
}
