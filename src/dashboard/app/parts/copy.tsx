import { useState } from 'preact/hooks'

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
      <span class="unseen" role="status">
        {said}
      </span>
    </>
  )
}

/** Over plain http, browsers offer only the old way: what is selected. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const { activeElement } = document
    const place = document.createElement('textarea')
    place.value = text
    place.className = 'unseen'
    document.body.append(place)
    place.select()
    const isDone = document.execCommand('copy')
    place.remove()
    if (activeElement instanceof HTMLElement) activeElement.focus()
    return isDone
  }
}
