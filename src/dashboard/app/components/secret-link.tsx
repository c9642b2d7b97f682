import { CodeBlock } from './code-block.tsx'
import { Moment } from './timestamp.tsx'
import { QuietButton } from './quiet-button.tsx'

/** Hosts that other machines do not reach. */
const LOOPBACK = /^(localhost|127\..*|\[::1\])$/

/** A link with a secret in it, which is shown only once. */
export function SecretLink({
  label,
  url,
  expiresAt,
  onClose,
}: {
  label: string
  url: string
  expiresAt: string
  onClose(): void
}) {
  const { hostname, origin } = new URL(url)
  return (
    <div class="secret-link" data-once>
      <CodeBlock label={label} text={url} />
      <p class="item-details">
        Copy it now: it is shown only once. Send it yourself. It works one time, until{' '}
        <Moment at={expiresAt} />.
      </p>
      {LOOPBACK.test(hostname) && (
        <p class="item-details">
          It opens only on the server’s own machine, because its address is <bdi>{origin}</bdi>. For
          others, set BASE_URL to an address that they reach, and make a new link.
        </p>
      )}
      <QuietButton onClick={onClose}>Done</QuietButton>
    </div>
  )
}
