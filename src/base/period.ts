/** The units of periods, in seconds, the largest first. */
export const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
] as const

/** Returns a number of seconds as people write it, such as `1 day` or `90 minutes`. */
export function toPeriod(seconds: number): string {
  const [unit, length] = UNITS.find(([, s]) => seconds >= s && seconds % s === 0) ?? UNITS[3]
  const n = seconds / length
  return `${n} ${unit}${n === 1 ? '' : 's'}`
}

/** Returns a number of seconds in whole units of the largest one that fits, such as `1 hour`. */
export function toLength(seconds: number): string {
  const [, length] = UNITS.find(([, s]) => seconds >= s) ?? UNITS[3]
  return toPeriod(Math.floor(seconds / length) * length)
}
