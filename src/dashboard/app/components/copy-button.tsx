import { useState } from 'preact/hooks'
import { copyText } from '../copy-text.ts'

const SAID_MS = 2_000

/** A button that copies a text. */
export function CopyButton({ label, toText }: { label: string; toText(): string }) {
  const [said, setSaid] = useState<string>()

  async function copy() {
    setSaid((await copyText(toText())) ? 'Copied' : 'The browser refused')
    setTimeout(() => setSaid(undefined), SAID_MS)
  }

  return (
    <>
      <button type="button" class="quiet-button" onClick={copy}>
        {said ?? label}
      </button>
      <span class="visually-hidden" role="status">
        {said}
      </span>
    </>
  )
}
