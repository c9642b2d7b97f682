import { useRef, useState } from 'preact/hooks'

const SAID_MS = 2_000

/** A command to copy. */
export function Code({ label, text }: { label: string; text: string }) {
  const code = useRef<HTMLElement>(null)
  const [said, setSaid] = useState('Copy')

  async function copy() {
    setSaid((await isCopied(text, code.current)) ? 'Copied' : 'Press Ctrl+C')
    setTimeout(() => setSaid('Copy'), SAID_MS)
  }

  return (
    <figure class="code">
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

/** Copies; where the browser does not let us, as over plain http, the text is selected at least. */
async function isCopied(text: string, element: HTMLElement | null): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    if (element) getSelection()?.selectAllChildren(element)
    return false
  }
}
