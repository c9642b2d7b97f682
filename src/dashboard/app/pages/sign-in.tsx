import { useLocation } from 'preact-iso'
import { useEffect, useState, useRef } from 'preact/hooks'
import { LoadingPage, StandalonePage } from '../components/standalone-page.tsx'
import { ProviderButtons, useSignInOptions } from '../openid/provider-buttons.tsx'
import { VisitProblem } from '../openid/visit-problem.tsx'
import { showResult, showToast } from '../components/toast.tsx'
import { PATHS, toSafeNext } from '../paths.ts'
import { request, type Failure } from '../request.ts'
import { loadSession, session, checkCookie, isInstalled, setAccount } from '../session.ts'
import { CodeField } from '../components/fields.tsx'
import { Field, Form } from '../components/form.tsx'
import { QuietButton } from '../components/buttons.tsx'
import { canUsePasskeys, signInWithPasskey } from '../passkeys/api.ts'

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

/** Challenges of the server end after 5 minutes. */
const RENEW_MS = 240_000

/** A button that signs in with a passkey. The browser offers them in the e-mail field, too. */
function PasskeyButton() {
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  const offer = useOffer(setFailure)
  if (!canUsePasskeys()) return null

  async function act() {
    if (isBusy) return
    setBusy(true)
    // A browser handles one request for a passkey at a time.
    offer.stop()
    const result = await signInWithPasskey()
    setBusy(false)
    setFailure(result.ok ? undefined : result.failure)
    if (result.ok) setAccount(result.data)
    else offer.start()
  }

  return (
    <div class="other-way">
      <div role="alert">{failure && <p class="notice">{failure.message}</p>}</div>
      <button type="button" class="button button-plain" aria-disabled={isBusy} onClick={act}>
        Sign in with a passkey
      </button>
    </div>
  )
}

/** Lets the browser offer passkeys in the e-mail field while the page is open. */
function useOffer(onFailure: (failure: Failure) => void): { start(): void; stop(): void } {
  const running = useRef<AbortController>(undefined)
  const [offer] = useState(() => ({
    start() {
      offer.stop()
      const controller = new AbortController()
      running.current = controller
      void run(controller.signal).then(failure => {
        if (!failure) return
        onFailure(failure)
        offer.start()
      })
    },
    stop: () => running.current?.abort(),
  }))
  useEffect(() => {
    offer.start()
    const timer = setInterval(offer.start, RENEW_MS)
    return () => {
      clearInterval(timer)
      offer.stop()
    }
  }, [])
  return offer
}

/** Resolves with the failure of a passkey that was chosen. */
async function run(signal: AbortSignal): Promise<Failure | undefined> {
  if (!canUsePasskeys()) return undefined
  if (!(await PublicKeyCredential.isConditionalMediationAvailable?.()) || signal.aborted)
    return undefined
  const result = await signInWithPasskey({ signal, mediation: 'conditional' })
  if (signal.aborted) return undefined
  if (!result.ok) return result.failure.code === 'not_confirmed' ? undefined : result.failure
  setAccount(result.data)
  return undefined
}
