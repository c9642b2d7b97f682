import type { SubscriptionEdit } from '../../../delivery/push/schema.ts'
import { showToast } from '../components/toast.tsx'
import { editDevice } from './api.ts'

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
  const result = await editDevice(id, edit)
  if (!result.ok) return showToast({ message: result.failure.message })
  showToast({ message: message, undo: () => editDevice(id, undo), onUndone: onChanged })
  await onChanged()
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
