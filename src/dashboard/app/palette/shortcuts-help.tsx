import type { NavLink } from '../components/navigation.tsx'

const KEYS: readonly (readonly [keys: string, action: string])[] = [
  ['j k', 'Next event, previous event'],
  ['Enter', 'Open the event'],
  ['→ ←', 'Open a group of events, close it'],
  ['Escape', 'Close the event or dialog'],
  ['Space', 'Pause or resume the feed'],
  ['/', 'Search'],
  ['Ctrl+K', 'Open the command palette'],
  ['?', 'Show these shortcuts'],
]

/** The dialog was empty when it opened. */
const focus = (button: HTMLElement | null) => button?.focus({ preventScroll: true })

/** The list of keyboard shortcuts; `links` are the pages that g opens. */
export function ShortcutsHelp({ links, onClose }: { links: readonly NavLink[]; onClose(): void }) {
  return (
    <>
      <h2>Keyboard shortcuts</h2>
      <dl class="facts keys-list">
        {[...KEYS, ...links.map(({ key, name }) => [`g ${key}`, name] as const)].map(
          ([keys, action]) => (
            <>
              <dt>
                {keys.split(' ').map(key => (
                  <kbd key={key}>{key}</kbd>
                ))}
              </dt>
              <dd>{action}</dd>
            </>
          ),
        )}
      </dl>
      <button ref={focus} type="button" class="quiet-button" onClick={onClose}>
        Close
      </button>
    </>
  )
}
