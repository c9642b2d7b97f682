import type { ComponentChildren } from 'preact'
import { useId, useLayoutEffect, useRef } from 'preact/hooks'
import { CodeBlock } from './copy-button.tsx'
import { QuietButton } from './buttons.tsx'

interface SecretOnceOptions {
  title: ComponentChildren
  /** The label of the secret. */
  label: string
  secret: string
  /** How to keep the secret, in full sentences. */
  advice?: ComponentChildren
  onDone(): void
  children?: ComponentChildren
}

/** A new secret, which is shown only once. */
export function SecretOnce({
  title,
  label,
  secret,
  advice = 'Copy it now: it is shown only once. Store it where only your application can read it.',
  onDone,
  children,
}: SecretOnceOptions) {
  const place = useRef<HTMLElement>(null)
  const id = useId()
  useLayoutEffect(() => place.current?.focus(), [secret])
  return (
    <section ref={place} class="secret-once" data-once tabIndex={-1} aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <p>{advice}</p>
      <CodeBlock label={label} text={secret} />
      {children}
      <QuietButton onClick={onDone}>I have saved it</QuietButton>
    </section>
  )
}
