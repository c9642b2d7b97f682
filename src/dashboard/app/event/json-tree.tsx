import { useState } from 'preact/hooks'
import { CopyButton } from '../components/copy-button.tsx'
import { toMetadataText } from '../feed/metadata.ts'

/** So many of a level are shown at first. */
const FIRST = 100
/** Levels that are open at first. */
const OPEN_LEVELS = 2

interface TreeOptions {
  value: object
  /** The names that lead to it; none for the whole. */
  path?: readonly string[]
  /** The address of what has the same value at the same place; undefined where no address can say so. */
  toOnly?: ((path: readonly string[], value: unknown) => string | undefined) | undefined
}

/** A JSON object to look into: each level can be closed. All of it is somebody else's, and is shown as text. */
export function JsonTree({ value, path = [], toOnly }: TreeOptions) {
  const [shown, setShown] = useState(FIRST)
  const entries = Object.entries(value)
  return (
    <ul class="tree">
      {entries.slice(0, shown).map(([name, one]) => (
        <li key={name}>
          <Branch name={name} value={one} path={[...path, name]} toOnly={toOnly} />
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

interface BranchOptions extends Pick<TreeOptions, 'toOnly'> {
  name: string
  value: unknown
  path: readonly string[]
}

function Branch({ name, value, path, toOnly }: BranchOptions) {
  const isObject = typeof value === 'object' && value !== null && Object.keys(value).length > 0
  // What is closed is not there: an object may be deep and wide.
  const [isOpen, setOpen] = useState(isObject && path.length <= OPEN_LEVELS)
  return (
    <details
      class={isObject ? undefined : 'tree-leaf'}
      open={isOpen}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>
        <bdi class="tree-name">{name}</bdi>{' '}
        {isObject ? <Count value={value} /> : <Leaf value={value} />}
      </summary>
      {isOpen && isObject && <JsonTree value={value} path={path} toOnly={toOnly} />}
      {isOpen && !isObject && <Acts value={value} only={toOnlyHere(path, value, toOnly)} />}
    </details>
  )
}

/** What can be done with a value. */
function Acts({ value, only }: { value: unknown; only: string | undefined }) {
  return (
    <div class="item-actions">
      <CopyButton label="Copy" toText={() => toMetadataText(value)} />
      {only !== undefined && (
        <a class="quiet-button" href={only}>
          Only these
        </a>
      )}
    </div>
  )
}

/** A search knows places by names with dots between; it finds no null, and nothing where a name has signs of its own. */
function toOnlyHere(
  path: readonly string[],
  value: unknown,
  toOnly: TreeOptions['toOnly'],
): string | undefined {
  const isNamed = value !== null && !path.some(name => /[.=]/.test(name))
  return isNamed ? toOnly?.(path, value) : undefined
}

function Count({ value }: { value: object }) {
  const count = Object.keys(value).length
  return <span class="tree-count">{Array.isArray(value) ? `[${count}]` : `{${count}}`}</span>
}

function Leaf({ value }: { value: unknown }) {
  const kind = value === null ? 'null' : typeof value
  return <bdi class={`leaf leaf-${kind}`}>{toMetadataText(value)}</bdi>
}
