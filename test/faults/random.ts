export { createRandom, type Random } from '../../src/base/random.ts'

/** Returns a new seed for a run without one. TIDINGS_SEED repeats an earlier one. */
export function newSeed(): number {
  return Number(process.env['TIDINGS_SEED']) || Math.trunc(Math.random() * 2 ** 31)
}
