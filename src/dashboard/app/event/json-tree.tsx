import { useState } from 'preact/hooks'
import { CopyButton } from '../components/copy-button.tsx'
import { hasAddress, LinkedText } from '../components/linked-text.tsx'
import { isNumber, isObject, toMetadataText } from '../../../log/events/metadata-values.ts'
import { QuietButton } from '../components/buttons.tsx'

/** The number of entries per level that are shown at first. */
const FIRST = 100
/** The number of levels that are open at first. */
const OPEN_LEVELS = 2

interface TreeOptions {
  value: object
  /** The keys that lead to `value`; empty for the root. */
  path?: readonly string[]
  /** The path of events with the same value here; undefined if it cannot be searched for. */
  toFilterPath?: ((path: readonly string[], value: unknown) => string | undefined) | undefined
}

/** A JSON value as a tree with levels that open and close. It is untrusted and shown as text. */
export function JsonTree({ value, path = [], toFilterPath }: TreeOptions) {
  const [shown, setShown] = useState(FIRST)
  const entries = Object.entries(value)
  return (
    <ul class="tree">
      {entries.slice(0, shown).map(([name, one]) => (
        <li key={name} class={hasAddress(one) ? 'tree-linked' : undefined}>
          <Branch name={name} value={one} path={[...path, name]} toFilterPath={toFilterPath} />
        </li>
      ))}
      {entries.length > shown && (
        <li>
          <QuietButton onClick={() => setShown(shown + 10 * FIRST)}>
            {(entries.length - shown).toLocaleString()} more
          </QuietButton>
        </li>
      )}
    </ul>
  )
}

interface BranchOptions extends Pick<TreeOptions, 'toFilterPath'> {
  name: string
  value: unknown
  path: readonly string[]
}

function Branch({ name, value, path, toFilterPath }: BranchOptions) {
  const isBranch = isObject(value) && Object.keys(value).length > 0
  // Closed levels are not rendered, because an object may be deep and wide.
  const [isOpen, setOpen] = useState(isBranch && path.length <= OPEN_LEVELS)
  // A link cannot be in the summary, which is a control itself.
  const isLinked = hasAddress(value)
  const leaf = isBranch ? <Count value={value} /> : <Leaf value={value} />
  const details = (
    <details
      class={isBranch ? undefined : 'tree-leaf'}
      open={isOpen}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>
        <bdi class="tree-name">{name}</bdi> {!isLinked && leaf}
      </summary>
      {isOpen && isBranch && <JsonTree value={value} path={path} toFilterPath={toFilterPath} />}
      {isOpen && !isBranch && (
        <Actions value={value} filterPath={toOwnFilterPath(path, value, toFilterPath)} />
      )}
    </details>
  )
  return (
    <>
      {details}
      {isLinked && leaf}
    </>
  )
}

/** The actions for a value. */
function Actions({ value, filterPath }: { value: unknown; filterPath: string | undefined }) {
  return (
    <div class="item-actions">
      <CopyButton label="Copy" toText={() => toMetadataText(value)} />
      {filterPath !== undefined && (
        <a class="quiet-button" href={filterPath}>
          Filter
        </a>
      )}
    </div>
  )
}

/** Searches join keys with dots. They cannot find null, or keys that contain `.` or `=`. */
function toOwnFilterPath(
  path: readonly string[],
  value: unknown,
  toFilterPath: TreeOptions['toFilterPath'],
): string | undefined {
  const isNamed = value !== null && !path.some(name => /[.=]/.test(name))
  return isNamed ? toFilterPath?.(path, value) : undefined
}

function Count({ value }: { value: object }) {
  const count = Object.keys(value).length
  return <span class="tree-count">{Array.isArray(value) ? `[${count}]` : `{${count}}`}</span>
}

function Leaf({ value }: { value: unknown }) {
  const kind = value === null ? 'null' : isNumber(value) ? 'number' : typeof value
  return (
    <span class={`leaf leaf-${kind}`}>
      <LinkedText text={toMetadataText(value)} />
    </span>
  )
}
