import type { ButtonHTMLAttributes } from 'preact'

/** A button that is not the main action of its place. */
export function QuietButton(attributes: ButtonHTMLAttributes<HTMLButtonElement>) {
  return <button type="button" class="quiet-button" {...attributes} />
}
