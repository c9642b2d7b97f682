/** The choices for how long an old key or secret stays valid, in hours. */
export const GRACE_PERIODS = [
  { value: '0', text: 'Stop now' },
  { value: '1', text: 'For 1 hour' },
  { value: '24', text: 'For 1 day' },
  { value: '168', text: 'For 1 week' },
]
