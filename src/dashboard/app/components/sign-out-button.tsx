import { useState } from 'preact/hooks'
import type { Failure } from '../request.ts'
import { signOut } from '../session.ts'
import { t } from '../locales/translate.tsx'

/** A button that ends the session. */
export function SignOutButton({ className = 'quiet-button' }) {
  const [failure, setFailure] = useState<Failure>()
  return (
    <>
      <button type="button" class={className} onClick={async () => setFailure(await signOut())}>
        {t('common.signOut')}
      </button>
      {failure && <p role="alert">{failure.message}</p>}
    </>
  )
}
