import { signal } from '@preact/signals'

/** The secret in the fragment of the opened link. It is kept in memory only. */
export const linkSecret = signal(take())

// A link opened in a running application changes only the fragment.
addEventListener('hashchange', () => {
  linkSecret.value = take() || linkSecret.value
})

/** Returns the secret in a pasted link or fragment. */
export function parseLinkSecret(text: string): string {
  return text.trim().replace(/^[^#]*#/, '')
}

/** Reads the fragment and removes it from the address bar and the history. */
function take(): string {
  const secret = location.hash.slice(1)
  if (secret) history.replaceState(history.state, '', location.pathname + location.search)
  return secret
}
