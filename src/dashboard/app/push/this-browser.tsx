import { useState } from 'preact/hooks'
import type { Subscription } from '../../../push/schema.ts'
import { Icon } from '../components/icon.tsx'
import type { Result, Failure } from '../request.ts'
import { renewSubscription, enablePush } from './browser.ts'
import { switchDevice } from './change-device.ts'
import type { PushState } from './state.ts'
import { SendTest } from './send-test.tsx'
import type { MessageKey } from '../locales/catalogue.ts'
import { t, toRich } from '../locales/translate.tsx'

const TEXTS = {
  on: { title: 'push.onTitle', lead: 'push.onLead' },
  off: { title: 'push.offTitle', lead: 'push.offLead' },
  blocked: { title: 'push.blockedTitle', lead: 'push.blockedLead' },
  insecure: { title: 'push.insecureTitle', lead: 'push.insecureLead' },
  'needs install': { title: 'push.needsInstallTitle', lead: 'push.needsInstallLead' },
  unsupported: { title: 'push.unsupportedTitle', lead: 'push.unsupportedLead' },
} as const satisfies Record<PushState, { title: MessageKey; lead: MessageKey }>

interface ThisBrowserOptions {
  person: string
  state: PushState
  device: Subscription | undefined
  /** The URL of this page for other devices. */
  url: string | undefined
  onChanged(): Promise<void>
}

/** The state of push in this browser, with the button or steps that help. */
export function ThisBrowser({ person, state, device, url, onChanged }: ThisBrowserOptions) {
  const [isBusy, setBusy] = useState(false)
  const [failure, setFailure] = useState<Failure>()
  const { title, lead } = TEXTS[state]

  async function act(send: () => Promise<Result<unknown>>) {
    if (isBusy) return
    setBusy(true)
    const result = await send()
    await onChanged()
    setBusy(false)
    setFailure(result.ok ? undefined : result.failure)
  }

  return (
    <section class={`push-state push-state-${state}`} aria-labelledby="push-state">
      <Icon name="notifications" size={28} />
      <div>
        <h2 id="push-state">{t(title)}</h2>
        <p>{t(lead)}</p>
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
            {t('push.turnOn')}
          </button>
        )}
        {state === 'blocked' && (
          <button type="button" class="button" onClick={() => void onChanged()}>
            {t('push.checkAgain')}
          </button>
        )}
        {state === 'insecure' && url?.startsWith('https:') && (
          <a class="button" href={url}>
            {t('push.openHttps')}
          </a>
        )}
        {state === 'needs install' && (
          <ol class="steps">
            <li>{toRich({ key: 'push.iosShare', values: { icon: <Icon name="share" /> } })}</li>
            <li>{t('push.iosAdd')}</li>
            <li>{t('push.iosOpen')}</li>
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
              {t('push.turnOff')}
            </button>
          </div>
        )}
      </div>
    </section>
  )
}
