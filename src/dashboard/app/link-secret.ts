import { signal } from '@preact/signals'

/** The secret of the link that led here. It is in memory alone, and gone with the page. */
export const linkSecret = signal(take())

// A link opened where the application already runs changes nothing but the fragment.
addEventListener('hashchange', () => {
  linkSecret.value = take() || linkSecret.value
})

/** The secret in a link, or in what somebody pasted for one. */
export function parseLinkSecret(text: string): string {
  return text.trim().replace(/^[^#]*#/, '')
}

/** Takes the fragment out of the address bar and of the history, where others may look. */
function take(): string {
  const secret = location.hash.slice(1)
  if (secret) history.replaceState(history.state, '', location.pathname + location.search)
  return secret
}
