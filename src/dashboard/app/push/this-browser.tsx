import { useState } from 'preact/hooks'
import type { Subscription } from '../../../push/schema.ts'
import { Icon } from '../components/icon.tsx'
import type { Result, Failure } from '../request.ts'
import { renewSubscription, enablePush } from './browser.ts'
import { switchDevice } from './change-device.ts'
import type { PushState } from './state.ts'
import { SendTest } from './send-test.tsx'

const WORDS: Record<PushState, { title: string; lead: string }> = {
  on: { title: 'On in this browser', lead: 'Events arrive here, also while Tidings is closed.' },
  off: {
    title: 'Off in this browser',
    lead: 'Turned on, it tells you of events also while Tidings is closed.',
  },
  blocked: {
    title: 'This browser blocks notifications',
    lead: 'Allow them in its settings for this page, beside the address, and in those of the system.',
  },
  insecure: {
    title: 'Notifications take https',
    lead: 'Browsers have them over https, or on the server’s own machine. The server’s operator can put a proxy with a certificate before it, and set BASE_URL.',
  },
  'needs install': {
    title: 'First, put Tidings on the Home Screen',
    lead: 'iPhones and iPads notify for installed apps, from iOS 16.4 on.',
  },
  unsupported: {
    title: 'This browser has no notifications',
    lead: 'Current versions of Chrome, Edge, Firefox and Safari have them, outside of private windows.',
  },
}

interface ThisBrowserOptions {
  person: string
  state: PushState
  device: Subscription | undefined
  /** Where a phone would open this page. */
  url: string | undefined
  onChanged(): Promise<void>
}

/** How push stands in this browser, in words, with the one button that helps. */
export function ThisBrowser({ person, state, device, url, onChanged }: ThisBrowserOptions) {
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  const { title, lead } = WORDS[state]

  async function act(send: () => Promise<Result<unknown>>) {
    if (isBusy) return
    setBusy(true)
    const result = await send()
    await onChanged()
    setBusy(false)
    setFailure(result.ok ? undefined : result.failure)
  }

  return (
    <section class={`push-state push-state-${state}`} aria-labelledby="here">
      <Icon name="notifications" size={28} />
      <div>
        <h2 id="here">{title}</h2>
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
            onClick={() => act(() => enablePush(person))}
          >
            Turn on
          </button>
        )}
        {state === 'blocked' && (
          <button type="button" class="button" onClick={() => void onChanged()}>
            Look again
          </button>
        )}
        {state === 'insecure' && url?.startsWith('https:') && (
          <a class="button" href={url}>
            Open over https
          </a>
        )}
        {state === 'needs install' && (
          <ol class="steps">
            <li>
              Tap Share, <Icon name="share" />, below the page or beside the address.
            </li>
            <li>Choose “Add to Home Screen”.</li>
            <li>Open Tidings from there, and come back to this page.</li>
          </ol>
        )}
        {state === 'on' && device && (
          <div class="push-state-actions">
            <SendTest
              device={device}
              onRenew={() => act(() => renewSubscription(person))}
              onChanged={onChanged}
            />
            <button
              type="button"
              class="quiet-button"
              onClick={() => switchDevice(device.id, false, onChanged)}
            >
              Turn off
            </button>
          </div>
        )}
      </div>
    </section>
  )
}
