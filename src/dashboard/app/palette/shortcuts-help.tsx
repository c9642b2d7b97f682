import { useLayoutEffect, useRef } from 'preact/hooks'
import type { NavLink } from '../components/navigation.tsx'

const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ['j k', 'The next event, the one before'],
  ['Enter', 'Open it'],
  ['Escape', 'Close what is open'],
  ['Space', 'Pause the feed, go on'],
  ['/', 'Search'],
  ['Ctrl+K', 'Go anywhere, do anything'],
  ['?', 'These keys'],
]

/** The keyboard shortcuts; `places` are the pages that g leads to. */
export function ShortcutsHelp({
  places,
  onClose,
}: {
  places: readonly NavLink[]
  onClose(): void
}) {
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="keys" onClose={onClose}>
      <h2 id="keys">Keys</h2>
      <dl class="facts keys-list">
        {[...KEYS, ...places.map(({ key, name }) => [`g ${key}`, name] as const)].map(
          ([keys, what]) => (
            <>
              <dt>
                {keys.split(' ').map(key => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dt>
              <dd>{what}</dd>
            </>
          ),
        )}
      </dl>
      <button type="button" class="quiet-button" onClick={() => dialog.current?.close()}>
        Close
      </button>
    </dialog>
  )
}
