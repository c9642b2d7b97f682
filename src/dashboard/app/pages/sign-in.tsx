import { useLocation } from 'preact-iso'
import { useEffect, useState } from 'preact/hooks'
import { StandalonePage } from '../components/standalone-page.tsx'
import { PATHS, toSafeNext } from '../paths.ts'
import { request } from '../request.ts'
import { session } from '../session.ts'
import { PasskeyButton } from '../sign-in/passkey-button.tsx'
import { PasswordForm } from '../sign-in/password-form.tsx'

/** Signs in and redirects to the requested page. */
export default function SignIn() {
  const { query, route } = useLocation()
  const hasNoOwner = useHasNoOwner()
  const next = toSafeNext(query['next'])
  const isSignedIn = session.value.kind === 'signed_in'

  useEffect(() => {
    if (isSignedIn) route(next, true)
  }, [isSignedIn, next])

  if (hasNoOwner) {
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
      <PasswordForm />
      <PasskeyButton />
      <p class="note">Forgot your password? Ask an owner of your organization for a reset link.</p>
    </StandalonePage>
  )
}

/** Returns whether the server has no account yet. */
function useHasNoOwner(): boolean {
  const [hasNoOwner, setHasNoOwner] = useState(false)
  useEffect(() => {
    void request('GET', '/api/setup').then(({ ok }) => setHasNoOwner(ok))
  }, [])
  return hasNoOwner
}
