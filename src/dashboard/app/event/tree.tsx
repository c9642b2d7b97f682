import { useState } from 'preact/hooks'

/** So many of a level are shown at first. */
const FIRST = 100
/** Levels that are open at first. */
const OPEN_LEVELS = 2

/** A JSON object to look into: each level can be closed. All of it is somebody else's, and is shown as text. */
export function Tree({ value, level = 0 }: { value: object; level?: number }) {
  const [shown, setShown] = useState(FIRST)
  const entries = Object.entries(value)
  return (
    <ul class="tree">
      {entries.slice(0, shown).map(([name, one]) => (
        <li key={name}>
          <Branch name={name} value={one} level={level} />
        </li>
      ))}
      {entries.length > shown && (
        <li>
          <button type="button" class="quiet-button" onClick={() => setShown(shown + 10 * FIRST)}>
            {entries.length - shown} more
          </button>
        </li>
      )}
    </ul>
  )
}

function Branch({ name, value, level }: { name: string; value: unknown; level: number }) {
  // What is closed is not there: an object may be deep and wide.
  const [isOpen, setOpen] = useState(level < OPEN_LEVELS)
  const count = typeof value === 'object' && value !== null ? Object.keys(value).length : 0
  if (typeof value !== 'object' || value === null || count === 0) {
    return (
      <>
        <bdi class="tree-name">{name}</bdi> <Leaf value={value} />
      </>
    )
  }
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <bdi class="tree-name">{name}</bdi>{' '}
        <span class="tree-count">{Array.isArray(value) ? `[${count}]` : `{${count}}`}</span>
      </summary>
      {isOpen && <Tree value={value} level={level + 1} />}
    </details>
  )
}

function Leaf({ value }: { value: unknown }) {
  const kind = value === null ? 'null' : typeof value
  return (
    <bdi class={`leaf leaf-${kind}`}>
      {kind === 'string' ? String(value) : JSON.stringify(value)}
    </bdi>
  )
}
