import { Code } from './code.tsx'
import { Moment } from './moment.tsx'

/** A link with a secret in it, to be handed over: it is in this page alone. */
export function OnceLink({
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
    <div class="once-link">
      <Code label={label} text={url} />
      <p class="item-about">
        Shown this once. Hand it over yourself: it works once, until{' '}
        <Moment atMs={Date.parse(expiresAt)} isFar />.
      </p>
      <button type="button" class="quiet-button" onClick={onClose}>
        Done
      </button>
    </div>
  )
}
