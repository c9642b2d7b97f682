import type { Subscription } from '../../../push/schema.ts'
import { Moment } from '../parts/moment.tsx'
import { Sure } from '../parts/sure.tsx'
import { tell } from '../parts/undo.tsx'
import { editDevice, removeDevice } from './calls.ts'
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

  async function turn(isOn: boolean) {
    const answer = await editDevice(id, { isOn })
    if (!answer.ok) return tell({ said: answer.failure.message })
    tell({
      said: `It is ${isOn ? 'on' : 'off'}.`,
      undo: () => editDevice(id, { isOn: !isOn }),
      onUndone: onChanged,
    })
    await onChanged()
  }

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
            <button type="button" class="quiet-button" onClick={() => turn(!isOn)}>
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
              ? 'Its name and quiet hours go, too. To have it silent for a while, turn it off.'
              : 'It comes back when somebody opens Tidings there. To have it silent, turn it off; to have it signed out, end its session under Account.'
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
