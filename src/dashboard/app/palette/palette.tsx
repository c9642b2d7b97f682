import { useLocation } from 'preact-iso'
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Account } from '../../../access/sign-in/schema.ts'
import type { ProjectChannel } from '../../../log/channels/schema.ts'
import { readChannelPage, readChannels } from '../feed/api.ts'
import { Icon } from '../components/icon.tsx'
import { isComposing, toShortcutKey } from '../key-press.ts'
import { listEntries, type Entry } from './entries.ts'
import { filterEntries } from './match.ts'
import { eventChannel, openDialog, typedEarly } from './state.ts'

const MAX_SHOWN = 50
const DEBOUNCE_MS = 200

interface PaletteOptions {
  account: Account
  project: string | undefined
  onClose(): void
}

/** The command palette: pages, channels and actions, found by a few letters. */
export function Palette({ account, project, onClose }: PaletteOptions) {
  const { route, path, query } = useLocation()
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState(typedEarly.value)
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

  // A layout effect, so that the next key already goes to the input.
  useLayoutEffect(() => dialog.current?.showModal(), [])
  useEffect(() => {
    document.getElementById(`entry-${current}`)?.scrollIntoView({ block: 'nearest' })
  }, [current, text])

  /** Closes at once, because the event of the dialog comes after the next keys. */
  function close() {
    // Closing first returns the focus to where it was.
    dialog.current?.close()
    onClose()
  }

  function run(entry: Entry | undefined) {
    if (!entry) return
    close()
    entry.run()
  }

  function onKeyDown(event: KeyboardEvent) {
    const { key, ctrlKey, metaKey } = event
    if (isComposing(event)) return
    if (key === 'ArrowDown' || key === 'ArrowUp') {
      const by = key === 'ArrowDown' ? 1 : -1
      setAt((current + by + found.length) % Math.max(1, found.length))
    } else if (key === 'Enter') run(found[current])
    else if (key === 'Escape' || (toShortcutKey(event) === 'k' && (ctrlKey || metaKey))) close()
    else return
    event.preventDefault()
  }

  return (
    <dialog
      ref={dialog}
      class="dialog palette"
      aria-label="Command palette"
      // The event of a former palette comes when the next one may be open.
      onClose={() => dialog.current && onClose()}
    >
      <div class="search">
        <Icon name="search" size={18} />
        <input
          role="combobox"
          aria-label="Search pages and actions"
          aria-expanded="true"
          aria-controls="entries"
          aria-activedescendant={found.length > 0 ? `entry-${current}` : undefined}
          placeholder="Type a command or search"
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          autofocus
          value={text}
          onInput={({ currentTarget }) => {
            setText(currentTarget.value)
            setAt(0)
          }}
          onKeyDown={onKeyDown}
        />
      </div>
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
    </dialog>
  )
}

/** The first channels of the project, plus those whose names contain the text. */
function useFoundChannels(project: string | undefined, text: string): readonly ProjectChannel[] {
  const [known, setKnown] = useState<readonly ProjectChannel[]>([])
  const [hasMore, setMore] = useState(false)
  const [found, setFound] = useState<readonly ProjectChannel[]>([])

  useEffect(() => {
    if (project === undefined) return
    void readChannels(project).then(result => {
      if (!result.ok) return
      setKnown(result.data.items)
      setMore(result.data.total > result.data.items.length)
    })
  }, [project])
  useEffect(() => {
    if (!hasMore || project === undefined || text === '') return
    let isOver = false
    const timer = setTimeout(async () => {
      const result = await readChannelPage(project, { search: text, limit: '20' }, undefined)
      if (!isOver && result.ok) setFound(result.data.items)
    }, DEBOUNCE_MS)
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [project, text, hasMore])

  const ids = new Set(known.map(({ id }) => id))
  return [...known, ...found.filter(({ id }) => !ids.has(id))]
}
