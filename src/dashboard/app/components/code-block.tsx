import { useRef, useState } from 'preact/hooks'
import { copyText } from '../copy-text.ts'
import { QuietButton } from './quiet-button.tsx'

const FEEDBACK_MS = 2_000

/** Code with a copy button. If the browser refuses to copy, the code is selected instead. */
export function CodeBlock({ label, text }: { label: string; text: string }) {
  const code = useRef<HTMLElement>(null)
  const [feedback, setFeedback] = useState<string>()

  async function copy() {
    const isCopied = await copyText(text)
    setFeedback(isCopied ? 'Copied' : 'Press Ctrl+C')
    if (!isCopied && code.current) getSelection()?.selectAllChildren(code.current)
    setTimeout(() => setFeedback(undefined), FEEDBACK_MS)
  }

  return (
    <figure class="code-block">
      <figcaption>
        {label}
        <QuietButton onClick={copy}>{feedback ?? 'Copy'}</QuietButton>
        {/* Browsers take no name from a live region inside the button. */}
        <span class="visually-hidden" role="status">
          {feedback}
        </span>
      </figcaption>
      <pre tabIndex={0} aria-label={label}>
        <code ref={code}>{text}</code>
      </pre>
    </figure>
  )
}
