import { signal } from '@preact/signals'

/** The dialog that is open above the page. */
export const openDialog = signal<'palette' | 'keys' | undefined>(undefined)

/** True if the search box should take the focus when the feed opens. */
export const focusSearch = signal(false)

/** The channel ID of the open event, which "this channel" then refers to. */
export const eventChannel = signal<string | undefined>(undefined)
