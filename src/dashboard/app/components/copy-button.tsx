import { useState } from 'preact/hooks'
import { copyText } from '../copy-text.ts'
import { QuietButton } from './quiet-button.tsx'

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
      <QuietButton onClick={copy}>{feedback ?? label}</QuietButton>
      <span class="visually-hidden" role="status">
        {feedback}
      </span>
    </>
  )
}
