import type { SubscriptionEdit } from '../../../delivery/push/subscription-schema.ts'
import { showResult } from '../components/toast.tsx'
import { request } from '../request.ts'

export interface Change {
  id: string
  edit: SubscriptionEdit
  /** The edit that reverses this one. */
  undo: SubscriptionEdit
  message: string
  onChanged(): Promise<void>
}

/** Edits a device and shows a toast with an Undo button. */
export async function changeDevice({ id, edit, undo, message, onChanged }: Change): Promise<void> {
  const change = (edit: SubscriptionEdit) =>
    request('PATCH /api/push/subscriptions/:subscriptionId', { subscriptionId: id, ...edit })
  const toast = { message, undo: () => change(undo), onUndone: onChanged }
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
