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
  const [result, setResult] = useState<Result<PushTestResult>>()
  const [isBusy, setBusy] = useState(false)

  async function act() {
    if (isBusy) return
    setBusy(true)
    setResult(undefined)
    const result = await sendTest(device.id)
    setBusy(false)
    setResult(result)
    // One that is gone stays on the page, for what is said of it.
    if (result.ok && !result.data.isRemoved) await onChanged()
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
        {result &&
          (result.ok ? (
            <TestOutcome outcome={result.data} onRenew={onRenew} />
          ) : (
            result.failure.message
          ))}
      </div>
    </>
  )
}

function TestOutcome({
  outcome,
  onRenew,
}: {
  outcome: PushTestResult
  onRenew: (() => void) | undefined
}) {
  const { isAccepted, isRemoved, reason, body, latencyMs } = outcome
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
