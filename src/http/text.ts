/** Why `text` cannot be stored as it is, or undefined: U+0000 and halves of surrogate pairs have no place in Postgres. */
export function findBadText(text: string): string | undefined {
  if (text.includes('\u0000')) return 'Must not contain U+0000'
  if (!text.isWellFormed()) return 'Must not contain half of a surrogate pair'
  return undefined
}
