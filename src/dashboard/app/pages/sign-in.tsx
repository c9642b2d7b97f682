import { useLocation } from 'preact-iso'
import { useEffect, useState } from 'preact/hooks'
import { StandalonePage } from '../components/standalone-page.tsx'
import { t, toRich } from '../locales/translate.tsx'
import { confirmConnection } from '../openid/api.ts'
import { ProviderButtons } from '../openid/provider-buttons.tsx'
import { useSignInOptions } from '../openid/use-sign-in-options.ts'
import { VisitProblem } from '../openid/visit-problem.tsx'
import { showToast } from '../components/toast.tsx'
import { PATHS, toSafeNext } from '../paths.ts'
import { request } from '../request.ts'
import { session } from '../session.ts'
import { PasskeyButton } from '../sign-in/passkey-button.tsx'
import { PasswordForm } from '../sign-in/password-form.tsx'

/** Signs in and redirects to the requested page. */
export default function SignIn() {
  const { query, route } = useLocation()
  const hasNoOwner = useHasNoOwner()
  const options = useSignInOptions()
  const next = toSafeNext(query['next'])
  const isSignedIn = session.value.kind === 'signed_in'

  useEffect(() => {
    if (!isSignedIn) return
    if (options.confirmation) void connect()
    route(next, true)
  }, [isSignedIn, next])

  if (hasNoOwner) {
    return (
      <StandalonePage title={t('auth.setUpFirst')} lead={t('auth.setUpFirstLead')}>
        <p>{t('auth.setUpFirstHint')}</p>
        <p>
          <a href={PATHS.setup}>{t('auth.haveLink')}</a>
        </p>
      </StandalonePage>
    )
  }
  return (
    <StandalonePage title={t('auth.signIn')}>
      <VisitProblem query={query} providers={options.providers} />
      {options.confirmation && (
        <p class="notice notice-info" role="status">
          {toRich({
            key: 'auth.confirmConnection',
            values: {
              email: <bdi>{options.confirmation.email}</bdi>,
              label: <bdi>{options.confirmation.label}</bdi>,
            },
          })}
        </p>
      )}
      {options.hasPasswords && (
        <>
          <PasswordForm />
          <PasskeyButton />
          <p class="note">{t('auth.forgot')}</p>
        </>
      )}
      {!options.hasPasswords && <PasskeyButton />}
      <ProviderButtons options={options} next={next} />
      {!options.hasPasswords && (
        <details>
          <summary>{t('auth.ownerPassword')}</summary>
          <p class="note">{t('auth.passwordsOff')}</p>
          <PasswordForm />
        </details>
      )}
    </StandalonePage>
  )
}

/** Connects the account that has just signed in with the identity that waits in this browser. */
async function connect(): Promise<void> {
  const result = await confirmConnection()
  showToast({
    message: result.ok ? t('auth.connected', { label: result.data.label }) : result.failure.message,
  })
}

/** Returns whether the server has no account yet. */
function useHasNoOwner(): boolean {
  const [hasNoOwner, setHasNoOwner] = useState(false)
  useEffect(() => {
    void request('GET', '/api/setup').then(({ ok }) => setHasNoOwner(ok))
  }, [])
  return hasNoOwner
}
