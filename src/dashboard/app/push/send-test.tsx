import { useState } from 'preact/hooks'
import type { Subscription, PushTestResult } from '../../../push/schema.ts'
import type { Result } from '../request.ts'
import { sendTest } from './api.ts'

interface SendTestOptions {
  device: Subscription
  /** Subscribes anew; undefined for another device than this, which does so by itself. */
  onRenew?(): void
  onChanged(): Promise<void>
}

/** A button that pushes something at once, and what the push service says to it. */
export function SendTest({ device, onRenew, onChanged }: SendTestOptions) {
  const [answer, setAnswer] = useState<Result<PushTestResult>>()
  const [isBusy, setBusy] = useState(false)

  async function act() {
    if (isBusy) return
    setBusy(true)
    setAnswer(undefined)
    const answer = await sendTest(device.id)
    setBusy(false)
    setAnswer(answer)
    // One that is gone stays on the page, for what is said of it.
    if (answer.ok && !answer.data.isRemoved) await onChanged()
  }

  return (
    <>
      <button
        type="button"
        class={onRenew ? 'button' : 'quiet-button'}
        aria-disabled={isBusy}
        onClick={act}
      >
        Send a test
      </button>
      <div class="test-result" role="status">
        {isBusy && 'Asking the push service …'}
        {answer &&
          (answer.ok ? <Said result={answer.data} onRenew={onRenew} /> : answer.failure.message)}
      </div>
    </>
  )
}

function Said({ result, onRenew }: { result: PushTestResult; onRenew: (() => void) | undefined }) {
  const { isAccepted, isRemoved, reason, body, latencyMs } = result
  return (
    <>
      <p>
        {reason}
        {latencyMs !== null && `, after ${latencyMs} ms`}.{' '}
        {isAccepted && 'If nothing shows, the system holds it back: look at its Do Not Disturb.'}
      </p>
      {body && !isAccepted && (
        <pre>
          <bdi>{body}</bdi>
        </pre>
      )}
      {isRemoved && onRenew && (
        <button type="button" class="button" onClick={onRenew}>
          Subscribe anew
        </button>
      )}
    </>
  )
}
