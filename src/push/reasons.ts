/** Why a push was withheld: sentences for the page of the event. */
export const WITHHELD = {
  notifyFalse: 'The event was sent with notify: false',
  archived: 'Its channel is archived',
  old: 'It happened more than 10 minutes before it was sent',
  noDevice: 'No device: nobody in the organization takes notifications',
  off: 'Notifications are off on this device',
  muted: 'The person has muted the channel',
  quiet: 'It was in the quiet hours of this device',
  collapsed: 'Collapsed: it is among those that one notification counts, after 10 in a minute',
} as const
