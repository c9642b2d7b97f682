import { useEffect, useRef, useState } from 'preact/hooks'
import { canUsePasskeys, signInWithPasskey } from '../passkeys/api.ts'
import type { Failure } from '../request.ts'
import { setAccount } from '../session.ts'

/** Challenges of the server end after 5 minutes. */
const RENEW_MS = 240_000

/** A button that signs in with a passkey. The browser offers them in the e-mail field, too. */
export function PasskeyButton() {
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
