import type { Subscription } from '../../../push/schema.ts'
import { Moment } from '../parts/moment.tsx'
import { Sure } from '../parts/sure.tsx'
import { removeDevice } from './calls.ts'
import { turn } from './change.ts'
import { giveUp } from './giving-up.ts'
import { Test } from './test.tsx'

interface DevicesOptions {
  devices: readonly Subscription[]
  onChanged(): Promise<void>
}

/** The browsers in which a person takes notifications. */
export function Devices({ devices, onChanged }: DevicesOptions) {
  return (
    <section class="part" aria-labelledby="devices">
      <h2 id="devices">Your devices</h2>
      {devices.length === 0 && <p class="lead-in">None takes notifications yet.</p>}
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
      <div class="item-what">
        <bdi>{label}</bdi> {isCurrent && <span class="badge badge-good">This browser</span>}{' '}
        {!isOn && <span class="badge">Off</span>}{' '}
        {flagged !== null && <span class="badge badge-bad">Refused</span>}
        <p class="item-about">
          {lastPushAt === null ? (
            'No push yet'
          ) : (
            <>
              Last push <Moment atMs={Date.parse(lastPushAt)} isFar />: <bdi>{lastOutcome}</bdi>
            </>
          )}
          {quietHours && ` · quiet ${quietHours.from} to ${quietHours.to}`}
        </p>
      </div>
      <div class="item-acts">
        {!isCurrent && (
          <>
            <button type="button" class="quiet-button" onClick={() => turn(id, !isOn, onChanged)}>
              Turn {isOn ? 'off' : 'on'}
            </button>
            <Test device={device} onChanged={onChanged} />
          </>
        )}
        <Sure
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
            if (isCurrent) await giveUp()
            await onChanged()
          }}
        />
      </div>
    </li>
  )
}
