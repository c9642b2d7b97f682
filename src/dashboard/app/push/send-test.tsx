import { useState } from 'preact/hooks'
import type { Subscription, PushTestResult } from '../../../delivery/push/subscription-schema.ts'
import { useAction } from '../components/use-action.ts'
import { request, type Result } from '../request.ts'
import { toDuration } from '../time.ts'

interface SendTestOptions {
  device: Subscription
  /** Subscribes again; undefined for other devices. */
  onRenew?(): void
  onChanged(): Promise<void>
}

/** A button that sends a test notification and shows the response of the push service. */
export function SendTest({ device, onRenew, onChanged }: SendTestOptions) {
  const [result, setResult] = useState<Result<PushTestResult>>()
  const { act, isBusy } = useAction()

  async function send() {
    setResult(undefined)
    const result = await act(() => request('POST /api/push/test', { subscriptionId: device.id }))
    setResult(result)
    // A removed device stays on the page, so that its result can be read.
    if (result?.ok && !result.data.isRemoved) await onChanged()
  }

  return (
    <>
      <button
        type="button"
        class={onRenew ? 'button' : 'quiet-button'}
        aria-disabled={isBusy}
        onClick={send}
      >
        Send a test
      </button>
      <div class="test-result" role="status">
        {isBusy && 'Waiting for the push service…'}
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
        {latencyMs === null ? `${reason}.` : `${reason}, after ${toDuration(latencyMs)}.`}{' '}
        {isAccepted && 'If no notification appears, check Do Not Disturb in the system settings.'}
      </p>
      {body && !isAccepted && (
        <pre>
          <bdi>{body}</bdi>
        </pre>
      )}
      {isRemoved && onRenew && (
        <button type="button" class="button" onClick={onRenew}>
          Subscribe again
        </button>
      )}
    </>
  )
}
