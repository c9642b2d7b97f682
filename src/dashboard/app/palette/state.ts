import { signal } from '@preact/signals'

/** What is open over the page. */
export const openDialog = signal<'palette' | 'keys' | undefined>(undefined)

/** Whether somebody who is on the way to the search wants to type at once. */
export const focusSearch = signal(false)

/** The id of the channel of the event that is looked at, which is what «this channel» means then. */
export const eventChannel = signal<string | undefined>(undefined)
