import { COLOURS, toColour } from '../colours.ts'

/**
 * Returns the CSS variable of the colour of each channel. A channel has the same colour in every
 * card, unless a larger channel in the card has it. `--series-0` is for all others.
 */
export function assignColours(ids: readonly string[]): Map<string, string> {
  const taken = new Map<number, string>()
  for (const id of ids) {
    const wanted = toColour(id)
    const steps = Array.from({ length: COLOURS }, (_, step) => (wanted + step) % COLOURS)
    taken.set(steps.find(place => !taken.has(place)) ?? wanted, id)
  }
  return new Map([...taken].map(([place, id]) => [id, `--series-${place + 1}`]))
}
