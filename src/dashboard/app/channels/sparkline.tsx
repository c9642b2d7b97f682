const HEIGHT = 12

/** A decorative chart of event counts per hour, oldest first. Bars are as high as square roots. */
export function Sparkline({ counts }: { counts: readonly number[] }) {
  const most = Math.max(...counts, 1)
  const bars = counts.flatMap((count, at) =>
    count > 0
      ? [`M${at * 2 + 1} ${HEIGHT}v${-Math.max(1, Math.sqrt(count / most) * HEIGHT).toFixed(1)}`]
      : [],
  )
  return (
    <svg class="sparkline" viewBox={`0 0 ${counts.length * 2} ${HEIGHT}`} aria-hidden="true">
      <path d={`M0 ${HEIGHT - 0.5}h${counts.length * 2}`} />
      <path d={bars.join('')} />
    </svg>
  )
}
