import { useState } from 'preact/hooks'
import type { Failure } from '../request.ts'
import { signOut } from '../session.ts'

/** The way out. */
export function SignOutButton({ look = 'quiet-button' }) {
  const [failure, setFailure] = useState<Failure>()
  return (
    <>
      <button type="button" class={look} onClick={async () => setFailure(await signOut())}>
        Sign out
      </button>
      {failure && <p role="alert">{failure.message}</p>}
    </>
  )
}
