import { useRef, useState } from 'preact/hooks'
import { copyText } from '../copy-text.ts'

const SAID_MS = 2_000

/** A command to copy; where the browser refuses, it is selected at least. */
export function CodeBlock({ label, text }: { label: string; text: string }) {
  const code = useRef<HTMLElement>(null)
  const [said, setSaid] = useState('Copy')

  async function copy() {
    const isCopied = await copyText(text)
    setSaid(isCopied ? 'Copied' : 'Press Ctrl+C')
    if (!isCopied && code.current) getSelection()?.selectAllChildren(code.current)
    setTimeout(() => setSaid('Copy'), SAID_MS)
  }

  return (
    <figure class="code-block">
      <figcaption>
        {label}
        <button type="button" class="quiet-button" onClick={copy}>
          <span role="status">{said}</span>
        </button>
      </figcaption>
      <pre tabIndex={0} aria-label={label}>
        <code ref={code}>{text}</code>
      </pre>
    </figure>
  )
}
