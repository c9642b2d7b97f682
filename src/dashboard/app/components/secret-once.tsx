import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { CodeBlock } from './code-block.tsx'

interface SecretOnceOptions {
  title: ComponentChildren
  /** What the secret is called. */
  label: string
  secret: string
  onDone(): void
  children?: ComponentChildren
}

/** A secret that was made just now and is not shown again. */
export function SecretOnce({ title, label, secret, onDone, children }: SecretOnceOptions) {
  const place = useRef<HTMLElement>(null)
  useEffect(() => place.current?.focus(), [secret])
  return (
    <section ref={place} class="secret-once" tabIndex={-1} aria-labelledby="once">
      <h2 id="once">{title}</h2>
      <p>It is shown this once. Keep it now, where only your application finds it.</p>
      <CodeBlock label={label} text={secret} />
      {children}
      <button type="button" class="quiet-button" onClick={onDone}>
        I have kept it
      </button>
    </section>
  )
}
