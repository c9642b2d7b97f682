// The levels of events. Pure: it also runs in the browser.

/** The levels in ascending order. The place of each is its number in the database. */
export const LEVELS = ['low', 'normal', 'high', 'critical'] as const
export type Level = (typeof LEVELS)[number]

/** Returns the number of a level in the database, where null is stored for `normal`. */
export function toRank(level: Level): number {
  return LEVELS.indexOf(level)
}
