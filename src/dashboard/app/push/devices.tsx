import type { Subscription, SubscriptionEdit } from '../../../delivery/push/subscription-schema.ts'
import { Item, Section } from '../components/item.tsx'
import { Moment } from '../components/timestamp.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { request } from '../request.ts'
import { unsubscribe } from './unsubscribe.ts'
import { SendTest } from './send-test.tsx'
import { QuietButton } from '../components/buttons.tsx'
import { showResult } from '../components/toast.tsx'

interface DevicesOptions {
  devices: readonly Subscription[]
  onChanged(): Promise<void>
}

/** The browsers in which the account receives notifications. */
export function Devices({ devices, onChanged }: DevicesOptions) {
  return (
    <Section id="devices" title="Your devices">
      {devices.length === 0 && (
        <p class="page-lead">No devices yet. Turn on notifications in a browser to add it.</p>
      )}
      <ul class="items">
        {devices.map(device => (
          <Device key={device.id} device={device} onChanged={onChanged} />
        ))}
      </ul>
    </Section>
  )
}

function Device({ device, onChanged }: { device: Subscription; onChanged(): Promise<void> }) {
  const { id, label, isOn, isCurrent, lastPushAt, lastOutcome, flagged } = device
  const { letsCriticalThrough, ownQuietHours } = device

  return (
    <Item
      title={
        <>
          <bdi>{label}</bdi> {isCurrent && <span class="badge badge-good">This browser</span>}{' '}
          {!isOn && <span class="badge">Off</span>}{' '}
          {(flagged !== null || device.lacksSecondFactor) && (
            <span class="badge badge-bad">{flagged ? 'Refused' : 'Needs a second factor'}</span>
          )}
        </>
      }
      details={[
        lastPushAt === null ? (
          'No notification sent yet'
        ) : (
          <>
            Last notification <Moment at={lastPushAt} />: <bdi>{lastOutcome}</bdi>
          </>
        ),
        ownQuietHours && 'its own quiet hours',
        letsCriticalThrough && 'critical events get through',
      ]}
    >
      {!isCurrent && (
        <>
          <QuietButton onClick={() => switchDevice(id, !isOn, onChanged)}>
            {isOn ? 'Turn off' : 'Turn on'}
          </QuietButton>
          <SendTest device={device} onChanged={onChanged} />
        </>
      )}
      <ConfirmButton
        isQuiet
        action="Remove"
        title="Remove"
        name={label}
        lead={
          isCurrent
            ? 'This also deletes its quiet hours. Turn it off instead to keep them.'
            : 'It is added again when you open Tidings there. To keep it silent, turn it off, or sign it out under Account.'
        }
        yes="Remove"
        send={() =>
          request('DELETE /api/push/subscriptions/:subscriptionId', { subscriptionId: id })
        }
        onDone={async () => {
          if (isCurrent) await unsubscribe()
          await onChanged()
        }}
      />
    </Item>
  )
}

interface Change {
  id: string
  edit: SubscriptionEdit
  /** The edit that reverses this one, if there is one. */
  undo: SubscriptionEdit | undefined
  message: string
  onChanged(): Promise<void>
}

/** Edits a device and shows a toast, with an Undo button if it can be undone. */
export async function changeDevice({ id, edit, undo, message, onChanged }: Change): Promise<void> {
  const change = (edit: SubscriptionEdit) =>
    request('PATCH /api/push/subscriptions/:subscriptionId', { subscriptionId: id, ...edit })
  const toast = undo ? { message, undo: () => change(undo), onUndone: onChanged } : message
  if (showResult(await change(edit), toast)) await onChanged()
}

/** Turns notifications for a device on or off. The device stays registered. */
export function switchDevice(
  id: string,
  isOn: boolean,
  onChanged: Change['onChanged'],
): Promise<void> {
  const message = isOn ? 'Notifications turned on.' : 'Notifications turned off.'
  return changeDevice({ id, edit: { isOn }, undo: { isOn: !isOn }, message, onChanged })
}
