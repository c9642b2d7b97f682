import { CodeBlock } from './code-block.tsx'
import { Timestamp } from './timestamp.tsx'

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
  return (
    <div class="secret-link">
      <CodeBlock label={label} text={url} />
      <p class="item-details">
        Copy it now: it is shown only once. Send it yourself. It works one time, until{' '}
        <Timestamp atMs={Date.parse(expiresAt)} hasDate />.
      </p>
      <button type="button" class="quiet-button" onClick={onClose}>
        Done
      </button>
    </div>
  )
}
