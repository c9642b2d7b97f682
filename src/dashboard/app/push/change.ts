import type { SubscriptionEdit } from '../../../push/schema.ts'
import { tell } from '../parts/undo.tsx'
import { editDevice } from './calls.ts'

export interface Change {
  id: string
  edit: SubscriptionEdit
  /** What takes it back. */
  back: SubscriptionEdit
  said: string
  onChanged(): Promise<void>
}

/** Changes something of a device, and offers to undo it. */
export async function change({ id, edit, back, said, onChanged }: Change): Promise<void> {
  const answer = await editDevice(id, edit)
  if (!answer.ok) return tell({ said: answer.failure.message })
  tell({ said, undo: () => editDevice(id, back), onUndone: onChanged })
  await onChanged()
}

/** Turns a device on or off; the server keeps all that it knows of it. */
export function turn(id: string, isOn: boolean, onChanged: Change['onChanged']): Promise<void> {
  const said = `It is ${isOn ? 'on' : 'off'}.`
  return change({ id, edit: { isOn }, back: { isOn: !isOn }, said, onChanged })
}
