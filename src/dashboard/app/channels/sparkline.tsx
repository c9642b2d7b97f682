const HEIGHT = 12

/** How many events came in each hour of a day, oldest first; for the eye, which sees no number in it. */
export function Sparkline({ counts }: { counts: readonly number[] }) {
  const most = Math.max(...counts)
  if (most <= 0) return null
  const bars = counts.flatMap((count, at) =>
    count > 0
      ? [`M${at * 2 + 1} ${HEIGHT}v${-Math.max(1, (count / most) * HEIGHT).toFixed(1)}`]
      : [],
  )
  return (
    <svg class="sparkline" viewBox={`0 0 ${counts.length * 2} ${HEIGHT}`} aria-hidden="true">
      <path d={bars.join('')} />
    </svg>
  )
}
