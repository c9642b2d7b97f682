import type { ButtonHTMLAttributes } from 'preact'
import { useState } from 'preact/hooks'
import type { Failure } from '../request.ts'
import { signOut } from '../session.ts'

/** A button that is not the main action of its place. */
export function QuietButton(attributes: ButtonHTMLAttributes<HTMLButtonElement>) {
  return <button type="button" class="quiet-button" {...attributes} />
}

interface SegmentedOptions<One extends string> {
  label: string
  all: readonly One[]
  chosen: One | undefined
  /** The text of a choice. */
  toText(one: One): string
  onChoose(one: One): void
}

/** A choice between a few buttons in a row. */
export function Segmented<One extends string>(options: SegmentedOptions<One>) {
  const { label, all, chosen, toText, onChoose } = options
  return (
    <div class="segmented" role="group" aria-label={label}>
      {all.map(one => (
        <button key={one} type="button" aria-pressed={one === chosen} onClick={() => onChoose(one)}>
          {toText(one)}
        </button>
      ))}
    </div>
  )
}

/** A button that ends the session. */
export function SignOutButton({ className = 'quiet-button' }) {
  const [failure, setFailure] = useState<Failure>()
  return (
    <>
      <button type="button" class={className} onClick={async () => setFailure(await signOut())}>
        Sign out
      </button>
      {failure && <p role="alert">{failure.message}</p>}
    </>
  )
}
