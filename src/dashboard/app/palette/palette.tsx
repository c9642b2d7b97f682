import type { RefObject } from 'preact'
import { useLocation } from 'preact-iso'
import { useEffect, useLayoutEffect, useState } from 'preact/hooks'
import type { Account } from '../../../access/sign-in/schema.ts'
import type { ProjectChannel } from '../../../log/channels/schema.ts'
import { useQuery } from '../components/query.tsx'
import { readChannels } from '../feed/use-channels.ts'
import { isComposing, toShortcutKey } from '../key-press.ts'
import { listEntries, type Entry } from './entries.ts'
import { filterEntries } from './match.ts'
import { request } from '../request.ts'
import { eventChannel, openDialog } from './state.ts'
import type { NavLink } from '../components/navigation.tsx'

/** The attributes that make a combobox of the input. */
const COMBOBOX = {
  role: 'combobox',
  'aria-expanded': 'true',
  'aria-controls': 'entries',
  autocapitalize: 'none',
  spellcheck: 'false',
}
const MAX_SHOWN = 50

interface PaletteOptions {
  account: Account
  project: string | undefined
  /** The input of the dialog, which may have a text already. */
  input: RefObject<HTMLInputElement | null>
  onClose(): void
}

/** The entries of the command palette: pages, channels and actions, found by a few letters. */
export function Palette({ account, project, input, onClose }: PaletteOptions) {
  const { route, path, query } = useLocation()
  const [text, setText] = useState(input.current?.value ?? '')
  const [at, setAt] = useState(0)
  const channels = useFoundChannels(project, text.trim())
  const channel =
    eventChannel.value ?? query['channel'] ?? /^\/p\/[^/]+\/channels\/([^/]+)/.exec(path)?.[1]
  const onShortcuts = () => (openDialog.value = 'keys')
  const found = filterEntries(
    listEntries({ account, project, path, channels, channel, route, onShortcuts }),
    text,
  ).slice(0, MAX_SHOWN)
  const current = Math.min(at, found.length - 1)

  useLayoutEffect(() => {
    // After a failure, the focus may be at its buttons.
    input.current?.focus()
    for (const [name, value] of Object.entries(COMBOBOX)) input.current?.setAttribute(name, value)
  }, [])
  useLayoutEffect(() => {
    const { current: field } = input
    if (!field) return
    field.oninput = () => {
      setText(field.value)
      setAt(0)
    }
    field.onkeydown = onKeyDown
    if (found.length > 0) field.setAttribute('aria-activedescendant', `entry-${current}`)
    else field.removeAttribute('aria-activedescendant')
  })
  useEffect(() => {
    document.getElementById(`entry-${current}`)?.scrollIntoView({ block: 'nearest' })
  }, [current, text])

  function run(entry: Entry | undefined) {
    if (!entry) return
    onClose()
    entry.run()
  }

  function onKeyDown(event: KeyboardEvent) {
    const { key, ctrlKey, metaKey } = event
    if (isComposing(event)) return
    if (key === 'ArrowDown' || key === 'ArrowUp') {
      const by = key === 'ArrowDown' ? 1 : -1
      setAt((current + by + found.length) % Math.max(1, found.length))
    } else if (key === 'Enter') run(found[current])
    else if (key === 'Escape' || (toShortcutKey(event) === 'k' && (ctrlKey || metaKey))) onClose()
    else return
    event.preventDefault()
  }

  return (
    <>
      <ul id="entries" role="listbox" aria-label="Results">
        {found.map((entry, n) => (
          <li
            key={n}
            id={`entry-${n}`}
            role="option"
            class="menu-item"
            aria-selected={n === current}
            onClick={() => run(entry)}
          >
            <span class="item-main">
              {entry.text} {entry.name !== undefined && <bdi>{entry.name}</bdi>}
            </span>
            <bdi class="item-details">{entry.hint}</bdi>
          </li>
        ))}
      </ul>
      {found.length === 0 && (
        <p class="note" role="status">
          No results
        </p>
      )}
    </>
  )
}

/** The first channels of the project, plus those whose names contain the text. */
function useFoundChannels(project: string | undefined, text: string): readonly ProjectChannel[] {
  const first = useQuery(project, () => readChannels(project ?? '')).data
  const items = first?.items ?? []
  const hasMore = text !== '' && first && first.total > items.length
  const found = useQuery(hasMore ? `${project} ${text}` : undefined, () =>
    request('GET /api/projects/:projectId/channels', {
      projectId: project ?? '',
      search: text,
      limit: 20,
    }),
  ).data
  const ids = new Set(items.map(({ id }) => id))
  return [...items, ...(found?.items ?? []).filter(({ id }) => !ids.has(id))]
}

const KEYS: readonly (readonly [keys: string, action: string])[] = [
  ['j k', 'Next event, previous event'],
  ['Enter', 'Open the event'],
  ['a', 'Acknowledge the open event'],
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
