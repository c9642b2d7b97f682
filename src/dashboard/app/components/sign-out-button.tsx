import { useState } from 'preact/hooks'
import type { Failure } from '../request.ts'
import { signOut } from '../session.ts'

/** A button that ends the session. */
export function SignOutButton({ className = 'quiet-button' }) {
  const [failure, setFailure] = useState<Failure>()
  return (
    <>
      <button type="button" class={className} onClick={async () => setFailure(await signOut())}>
        Sign out
      </button>
      {failure && <p role="alert">{failure.message}</p>}
    </>
  )
}
