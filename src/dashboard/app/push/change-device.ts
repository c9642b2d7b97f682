import type { SubscriptionEdit } from '../../../push/schema.ts'
import { showToast } from '../components/toast.tsx'
import { editDevice } from './api.ts'

export interface Change {
  id: string
  edit: SubscriptionEdit
  /** What takes it back. */
  undo: SubscriptionEdit
  message: string
  onChanged(): Promise<void>
}

/** Changes something of a device, and offers to undo it. */
export async function changeDevice({ id, edit, undo, message, onChanged }: Change): Promise<void> {
  const result = await editDevice(id, edit)
  if (!result.ok) return showToast({ message: result.failure.message })
  showToast({ message: message, undo: () => editDevice(id, undo), onUndone: onChanged })
  await onChanged()
}

/** Turns a device on or off; the server keeps all that it knows of it. */
export function switchDevice(
  id: string,
  isOn: boolean,
  onChanged: Change['onChanged'],
): Promise<void> {
  const message = `It is ${isOn ? 'on' : 'off'}.`
  return changeDevice({ id, edit: { isOn }, undo: { isOn: !isOn }, message, onChanged })
}
