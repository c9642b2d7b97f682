/** The units of periods, in seconds, the largest first. */
export const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const

/** Returns a number of seconds as people write it, such as `1 day` or `90 minutes`. */
export function toPeriod(seconds: number): string {
  const [unit, length] = UNITS.find(([, length]) => seconds % length === 0) ?? UNITS[3]
  const n = seconds / length
  return `${n} ${unit}${n === 1 ? '' : 's'}`
}

/** Returns the length of a run as the end of a sentence. Nothing if it is unknown. */
export function toLength(ms: string | null): string {
  return ms === null ? '' : ` after ${toPeriod(Math.round(Number(ms) / 1000))}`
}
