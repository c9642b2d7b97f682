import type { Signal } from '@preact/signals'
import { SecretOnce } from '../components/secret-once.tsx'
import { Moment } from '../components/timestamp.tsx'

/** Hosts that other machines do not reach. */
const LOOPBACK = /^(localhost|127\..*|\[::1\])$/

/** An invite or a password-reset link that was just created. */
export interface NewLink {
  id: string
  title: string
  url: string
  expiresAt: string
}

export type ShownLink = Signal<NewLink | undefined>

/** A new link, which is shown only once. */
export function LinkOnce({ link }: { link: ShownLink }) {
  if (!link.value) return null
  const { title, url, expiresAt } = link.value
  const { hostname, origin } = new URL(url)
  return (
    <SecretOnce
      title={title}
      label="Link"
      secret={url}
      advice={
        <>
          Copy it now: it is shown only once. Send it yourself. It works one time, until{' '}
          <Moment at={expiresAt} />.
        </>
      }
      onDone={() => {
        link.value = undefined
      }}
    >
      {LOOPBACK.test(hostname) && (
        <p class="hint">
          It opens only on the server’s own machine, because its address is <bdi>{origin}</bdi>. For
          others, set BASE_URL to an address that they reach, and make a new link.
        </p>
      )}
    </SecretOnce>
  )
}
