/** How many colours tell things apart: `--series-1` to `--series-8`. */
export const COLOURS = 8

/** Returns the place of the colour of a channel or user: always the same, below `COLOURS`. */
export function toColour(id: string): number {
  return [...id].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 65_521, 7) % COLOURS
}
