import type { Subscription } from '../../../delivery/push/subscription-schema.ts'
import { Icon } from '../components/icon.tsx'
import { useAction } from '../components/use-action.ts'
import type { Result } from '../request.ts'
import { renewSubscription, enablePush } from './browser.ts'
import { switchDevice } from './devices.tsx'
import type { PushState } from './state.ts'
import { SendTest } from './send-test.tsx'
import { QuietButton } from '../components/buttons.tsx'

const TEXTS = {
  on: {
    title: 'On in this browser',
    lead: 'You receive notifications here, even while Tidings is closed.',
  },
  off: {
    title: 'Off in this browser',
    lead: 'Turn on notifications to hear about events even while Tidings is closed.',
  },
  blocked: {
    title: 'This browser blocks notifications',
    lead: 'Allow them for this site next to the address, and in the system settings.',
  },
  insecure: {
    title: 'HTTPS required',
    lead: 'Browsers allow them only over HTTPS, or on the server’s own machine. Ask the operator to put the server behind an HTTPS proxy and to set BASE_URL.',
  },
  'needs install': {
    title: 'Add Tidings to the Home Screen first',
    lead: 'iPhones and iPads support notifications only in installed apps, from iOS 16.4.',
  },
  unsupported: {
    title: 'This browser does not support notifications',
    lead: 'Use a current version of Chrome, Edge, Firefox or Safari, and no private window.',
  },
} as const satisfies Record<PushState, { title: string; lead: string }>

interface ThisBrowserOptions {
  accountId: string
  state: PushState
  device: Subscription | undefined
  /** The URL of this page for other devices. */
  url: string | undefined
  onChanged(): Promise<void>
}

/** The state of push in this browser, with the button or steps that help. */
export function ThisBrowser({ accountId, state, device, url, onChanged }: ThisBrowserOptions) {
  const { act, isBusy, failure } = useAction()
  const { title, lead } = TEXTS[state]

  const subscribe = (send: (accountId: string) => Promise<Result<unknown>>) =>
    act(async () => {
      const result = await send(accountId)
      await onChanged()
      return result
    })

  return (
    <section class={`push-state push-state-${state}`} aria-labelledby="push-state">
      <Icon name="notifications" size={28} />
      <div>
        <h2 id="push-state">{title}</h2>
        <p>{lead}</p>
        {failure && (
          <p role="alert" class="notice">
            {failure.message}
          </p>
        )}
        {state === 'off' && (
          <button
            type="button"
            class="button"
            aria-disabled={isBusy}
            onClick={() => void subscribe(enablePush)}
          >
            Turn on
          </button>
        )}
        {state === 'blocked' && (
          <button type="button" class="button" onClick={() => void onChanged()}>
            Check again
          </button>
        )}
        {state === 'insecure' && url?.startsWith('https:') && (
          <a class="button" href={url}>
            Open over HTTPS
          </a>
        )}
        {state === 'needs install' && (
          <ol class="steps">
            <li>
              Tap Share <Icon name="share" /> below the page or next to the address.
            </li>
            <li>Choose “Add to Home Screen”.</li>
            <li>Open Tidings from the Home Screen and return to this page.</li>
          </ol>
        )}
        {state === 'on' && device && (
          <div class="push-state-actions">
            <SendTest
              device={device}
              onRenew={() => void subscribe(renewSubscription)}
              onChanged={onChanged}
            />
            <QuietButton onClick={() => switchDevice(device.id, false, onChanged)}>
              Turn off
            </QuietButton>
          </div>
        )}
      </div>
    </section>
  )
}
