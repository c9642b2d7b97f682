import { CodeBlock } from './code-block.tsx'
import { Timestamp } from './timestamp.tsx'

/** A link with a secret in it, to be handed over: it is in this page alone. */
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
        Shown this once. Hand it over yourself: it works once, until{' '}
        <Timestamp atMs={Date.parse(expiresAt)} hasDate />.
      </p>
      <button type="button" class="quiet-button" onClick={onClose}>
        Done
      </button>
    </div>
  )
}
