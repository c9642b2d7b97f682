import type { RefObject } from 'preact'
import { useState, useRef } from 'preact/hooks'
import { copyText } from '../copy-text.ts'
import { QuietButton } from './buttons.tsx'

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

const FEEDBACK_MS = 2_000

interface CopyButtonOptions {
  label: string
  toText(): string
  /** The element with the text, which is selected if the browser refuses to copy. */
  shown?: RefObject<HTMLElement | null>
}

/** A button that copies the text that `toText` returns. */
export function CopyButton({ label, toText, shown }: CopyButtonOptions) {
  const [feedback, setFeedback] = useState<string>()

  async function copy() {
    const isCopied = await copyText(toText())
    setFeedback(isCopied ? 'Copied' : shown ? 'Press Ctrl+C' : 'Copy failed')
    if (!isCopied && shown?.current) getSelection()?.selectAllChildren(shown.current)
    setTimeout(() => setFeedback(undefined), FEEDBACK_MS)
  }

  return (
    <>
      <QuietButton onClick={copy}>{feedback ?? label}</QuietButton>
      {/* Browsers take no name from a live region inside the button. */}
      <span class="visually-hidden" role="status">
        {feedback}
      </span>
    </>
  )
}
