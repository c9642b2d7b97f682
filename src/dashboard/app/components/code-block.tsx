import { useRef } from 'preact/hooks'
import { CopyButton } from './copy-button.tsx'

/** Code with a copy button. If the browser refuses to copy, the code is selected instead. */
export function CodeBlock({ label, text }: { label: string; text: string }) {
  const code = useRef<HTMLElement>(null)
  return (
    <figure class="code-block">
      <figcaption>
        {label}
        <CopyButton label="Copy" toText={() => text} shown={code} />
      </figcaption>
      <pre tabIndex={0} aria-label={label}>
        <code ref={code}>{text}</code>
      </pre>
    </figure>
  )
}
