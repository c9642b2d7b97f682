import type { Subscription } from '../../../push/schema.ts'
import { Timestamp } from '../components/timestamp.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { removeDevice } from './api.ts'
import { switchDevice } from './change-device.ts'
import { unsubscribe } from './unsubscribe.ts'
import { SendTest } from './send-test.tsx'

interface DevicesOptions {
  devices: readonly Subscription[]
  onChanged(): Promise<void>
}

/** The browsers in which a person takes notifications. */
export function Devices({ devices, onChanged }: DevicesOptions) {
  return (
    <section class="section" aria-labelledby="devices">
      <h2 id="devices">Your devices</h2>
      {devices.length === 0 && <p class="page-lead">None takes notifications yet.</p>}
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
        <bdi>{label}</bdi> {isCurrent && <span class="badge badge-good">This browser</span>}{' '}
        {!isOn && <span class="badge">Off</span>}{' '}
        {flagged !== null && <span class="badge badge-bad">Refused</span>}
        <p class="item-details">
          {lastPushAt === null ? (
            'No push yet'
          ) : (
            <>
              Last push <Timestamp atMs={Date.parse(lastPushAt)} hasDate />:{' '}
              <bdi>{lastOutcome}</bdi>
            </>
          )}
          {quietHours && ` · quiet ${quietHours.from} to ${quietHours.to}`}
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
              Turn {isOn ? 'off' : 'on'}
            </button>
            <SendTest device={device} onChanged={onChanged} />
          </>
        )}
        <ConfirmButton
          isQuiet
          action="Remove"
          title={
            <>
              Remove <bdi>{label}</bdi>?
            </>
          }
          lead={
            isCurrent
              ? 'Its quiet hours go, too. Turned off, it keeps them.'
              : 'It comes back when you open Tidings there. Turned off, it stays silent; its session ends under Account.'
          }
          yes="Remove"
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
