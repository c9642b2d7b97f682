/**
 * Returns the heights at which each part of each bar ends, from the bottom to the top. A bar is as
 * high as the square root of its sum, and its parts have their share of that height.
 */
export function stack(series: readonly (readonly number[])[]): number[][] {
  const sums = (series[0] ?? []).map((_, bar) =>
    series.reduce((sum, values) => sum + (values[bar] ?? 0), 0),
  )
  const ends = sums.map(() => 0)
  return series.map(values =>
    sums.map((sum, bar) => {
      const end = (ends[bar] ?? 0) + (values[bar] ?? 0)
      ends[bar] = end
      return sum > 0 ? (Math.sqrt(sum) * end) / sum : 0
    }),
  )
}

/**
 * Returns counts for the axis up to the height `most`: round ones, at about a half and the whole of
 * the height.
 */
export function toTicks(most: number): number[] {
  const top = floorToRound(most ** 2)
  return [...new Set([0, floorToRound(top / 4), top])]
}

/** The largest of 1, 2, 5, 10, 20 … that is not larger than `count`; 0 below 1. */
function floorToRound(count: number): number {
  // A square root and its square can differ in the last digit.
  const rest = count * (1 + 1e-9)
  if (rest < 1) return 0
  const unit = 10 ** Math.floor(Math.log10(rest))
  return unit * (rest >= 5 * unit ? 5 : rest >= 2 * unit ? 2 : 1)
}
