/** The colours of channels, as `--series-1` to `--series-8`. `--series-0` is for all others. */
const COLOURS = 8

/**
 * Returns the CSS variable of the colour of each channel. A channel has the same colour in every
 * card, unless a larger channel in the card has it.
 */
export function assignColours(ids: readonly string[]): Map<string, string> {
  const taken = new Map<number, string>()
  for (const id of ids) {
    const wanted = hash(id) % COLOURS
    const steps = Array.from({ length: COLOURS }, (_, step) => (wanted + step) % COLOURS)
    taken.set(steps.find(place => !taken.has(place)) ?? wanted, id)
  }
  return new Map([...taken].map(([place, id]) => [id, `--series-${place + 1}`]))
}

function hash(text: string): number {
  return [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 65_521, 7)
}
