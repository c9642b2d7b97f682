import type { Subscription } from '../../../push/schema.ts'
import { Timestamp } from '../components/timestamp.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { removeDevice } from './api.ts'
import { switchDevice } from './change-device.ts'
import { unsubscribe } from './unsubscribe.ts'
import { SendTest } from './send-test.tsx'
import { t, toRich } from '../locales/translate.tsx'

interface DevicesOptions {
  devices: readonly Subscription[]
  onChanged(): Promise<void>
}

/** The browsers in which the account receives notifications. */
export function Devices({ devices, onChanged }: DevicesOptions) {
  return (
    <section class="section" aria-labelledby="devices">
      <h2 id="devices">{t('push.devices')}</h2>
      {devices.length === 0 && <p class="page-lead">{t('push.noDevices')}</p>}
      <ul class="items">
        {devices.map(device => (
          <Device key={device.id} device={device} onChanged={onChanged} />
        ))}
      </ul>
    </section>
  )
}

function Device({ device, onChanged }: { device: Subscription; onChanged(): Promise<void> }) {
  const { id, label, isOn, isCurrent, lastPushAt, lastOutcome, flagged, quietHours } = device

  return (
    <li>
      <div class="item-main">
        <bdi>{label}</bdi>{' '}
        {isCurrent && <span class="badge badge-good">{t('push.thisBrowser')}</span>}{' '}
        {!isOn && <span class="badge">{t('push.off')}</span>}{' '}
        {flagged !== null && <span class="badge badge-bad">{t('push.refused')}</span>}
        <p class="item-details">
          {lastPushAt === null
            ? t('push.noneSent')
            : toRich({
                key: 'push.lastPush',
                values: {
                  time: <Timestamp atMs={Date.parse(lastPushAt)} hasDate />,
                  outcome: <bdi>{lastOutcome}</bdi>,
                },
              })}
          {quietHours && ` · ${t('push.quietHours', quietHours)}`}
        </p>
      </div>
      <div class="item-actions">
        {!isCurrent && (
          <>
            <button
              type="button"
              class="quiet-button"
              onClick={() => switchDevice(id, !isOn, onChanged)}
            >
              {t(isOn ? 'push.turnOff' : 'push.turnOn')}
            </button>
            <SendTest device={device} onChanged={onChanged} />
          </>
        )}
        <ConfirmButton
          isQuiet
          action={t('push.remove')}
          title={toRich({ key: 'push.removeTitle', values: { name: <bdi>{label}</bdi> } })}
          lead={t(isCurrent ? 'push.removeThisLead' : 'push.removeLead')}
          yes={t('push.remove')}
          send={() => removeDevice(id)}
          onDone={async () => {
            if (isCurrent) await unsubscribe()
            await onChanged()
          }}
        />
      </div>
    </li>
  )
}
