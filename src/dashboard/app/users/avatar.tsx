import { toUserPath } from '../paths.ts'
import { readUserName } from './names.ts'

interface UserNameOptions {
  project: string
  userId: string
  class?: string
  tabIndex?: number
}

/** The avatar and the name of a user, or the ID, as a link to their page if it has an address. */
export function UserName({ project, userId, ...attributes }: UserNameOptions) {
  const name = readUserName(project, userId) ?? userId
  const path = toUserPath(project, userId)
  const content = (
    <>
      <Avatar userId={userId} name={name} />
      <bdi>{name}</bdi>
    </>
  )
  if (path === undefined) return <span class={attributes.class}>{content}</span>
  return (
    <a href={path} title={userId} {...attributes}>
      {content}
    </a>
  )
}

/** The initials of a user, in their colour. Decoration, as the name is next to it. */
export function Avatar({ userId, name }: { userId: string; name: string }) {
  return (
    // The initials are no text, so that a copied name does not begin with them.
    <span
      class="initials"
      aria-hidden="true"
      data-initials={toInitials(name)}
      style={`--user: var(--series-${toColour(userId) + 1})`}
    />
  )
}

/** The first letters of the first and the last word of a name, an e-mail address or an ID. */
export function toInitials(name: string): string {
  const isName = /\s/.test(name.trim())
  const words = (isName ? name : name.replace(/^([^@]+)@.*$/s, '$1'))
    .split(isName ? /\s+/ : /[-._:/+|]+/)
    .map(word => word.replace(/^[^\p{L}\p{N}]+/u, ''))
    .filter(word => word !== '')
  const [first = name, ...more] = words
  return [first, ...more.slice(-1)].map(toFirstLetter).join('')
}

/** The first letter of a text as a reader sees it, in upper case. */
export function toFirstLetter(text: string): string {
  // Creating a segmenter delays the first paint. In ASCII, each character stands alone.
  if (/^[ -~]([ -~]|$)/.test(text)) return text.charAt(0).toUpperCase()
  const [first] = new Intl.Segmenter().segment(text)
  return first?.segment.toUpperCase() ?? '·'
}

/** How many colours tell things apart: `--series-1` to `--series-8`. */
export const COLOURS = 8

/** Returns the place of the colour of a channel or user: always the same, below `COLOURS`. */
export function toColour(id: string): number {
  return [...id].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 65_521, 7) % COLOURS
}
