/** Numbers that are the same for the same seed, in order. */
export interface Random {
  seed: number
  /** From 0 up to, but not including, 1. */
  next(): number
  /** A whole number from 0 up to, but not including, `end`. */
  below(end: number): number
  pick<Item>(items: readonly Item[]): Item
  /** Another source, independent of the calls to this one. */
  fork(nth: number): Random
}

/** Mulberry32: https://gist.github.com/tommyettinger/46a874533244883189143505d203312c */
export function createRandom(seed: number): Random {
  let state = seed | 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const below = (end: number) => Math.floor(next() * end)
  return {
    seed,
    next,
    below,
    // The index is below the length.
    pick: items => items[below(items.length)]!,
    fork: nth => createRandom(Math.imul(seed ^ (nth + 1), 0x9e3779b1)),
  }
}
