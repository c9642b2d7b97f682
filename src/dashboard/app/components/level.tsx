import type { Level } from '../../../log/channels/level.ts'

// A triangle and an octagon, each with an exclamation mark left out.
const MARK = 'v5h1.8v-5zm0 6.2v1.7h1.8v-1.7z'
const SHAPES = {
  high: `M8 1 15.7 15H.3zM7.1 5.5${MARK}`,
  critical: `M5 .7h6L15.3 5v6L11 15.3H5L.7 11V5zM7.1 4${MARK}`,
}

/** A level or a state with a capital letter. */
export function capitalize(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}

/**
 * The level of an event before its title: a shape for the urgent ones, and a word for screen
 * readers. Nothing for `normal`, which events do not name.
 */
export function LevelMark({ level }: { level: Level | null | undefined }) {
  if (!level) return null
  const name = capitalize(level)
  const word = <span class={`visually-hidden is-${level}`}>{name}: </span>
  if (level !== 'high' && level !== 'critical') return word
  return (
    <span class={`level level-${level}`} title={name}>
      <svg viewBox="0 0 16 16" width="1.1em" height="1.1em" aria-hidden="true">
        <path d={SHAPES[level]} />
      </svg>
      {word}
    </span>
  )
}
