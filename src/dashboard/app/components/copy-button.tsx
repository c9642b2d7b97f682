import { useState } from 'preact/hooks'
import { copyText } from '../copy-text.ts'

const FEEDBACK_MS = 2_000

/** A button that copies the text that `toText` returns. */
export function CopyButton({ label, toText }: { label: string; toText(): string }) {
  const [feedback, setFeedback] = useState<string>()

  async function copy() {
    setFeedback((await copyText(toText())) ? 'Copied' : 'Copy failed')
    setTimeout(() => setFeedback(undefined), FEEDBACK_MS)
  }

  return (
    <>
      <button type="button" class="quiet-button" onClick={copy}>
        {feedback ?? label}
      </button>
      <span class="visually-hidden" role="status">
        {feedback}
      </span>
    </>
  )
}
