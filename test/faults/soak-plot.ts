import { plot } from '../bench/plot.ts'
import type { Sample } from './soak-sample.ts'

/** Returns the curves of a run as one SVG; `marks` are the restarts, in seconds. */
export function toPlot(
  samples: readonly Sample[],
  { seconds, rate, marks }: { seconds: number; rate: number; marks: readonly number[] },
): string {
  const toSeries = (name: string, read: (sample: Sample) => number | undefined) => ({
    name,
    points: samples.flatMap((sample): [number, number][] => {
      const value = read(sample)
      return value === undefined ? [] : [[sample.atS / 60, value]]
    }),
  })
  const panel = (title: string, unit: string, ...series: ReturnType<typeof toSeries>[]) => ({
    title,
    unit,
    x: 'linear' as const,
    y: 'linear' as const,
    xLabel: 'minutes',
    series,
    marks: marks.map(second => second / 60),
  })
  const of = (server: number, figure: 'rssMb' | 'files') =>
    toSeries(
      server === 0 ? 'restarted' : 'long life',
      ({ servers }) => servers.find(({ life }) => life.startsWith(`${server}.`))?.[figure],
    )
  return plot({
    title: `${Math.round(seconds / 60)} minutes at ${Math.round(rate)} events/s, with restarts (dashed)`,
    panels: [
      panel('Memory of the servers', 'MB of RSS', of(0, 'rssMb'), of(1, 'rssMb')),
      panel('Open files of the servers', 'descriptors', of(0, 'files'), of(1, 'files')),
      panel(
        'Memory of Postgres',
        'MB',
        toSeries('RSS', ({ postgres }) => postgres.rssMb),
        toSeries('PSS', ({ postgres }) => postgres.pssMb),
        toSeries('its own', ({ postgres }) => postgres.ownMb),
      ),
      panel(
        'Postgres',
        'processes',
        toSeries('processes', ({ postgres }) => postgres.processes),
        toSeries('backends', ({ backends }) => backends),
      ),
      panel(
        'Acknowledged',
        'events/s',
        toSeries('events', ({ perSecond }) => perSecond),
      ),
      panel(
        'Latency',
        'ms, p99',
        toSeries('POST', ({ postP99Ms }) => postP99Ms),
        toSeries('feed', ({ feedP99Ms }) => feedP99Ms),
      ),
      panel(
        'Outbox',
        'deliveries',
        toSeries('rows', ({ outboxRows }) => outboxRows),
      ),
      panel(
        'Age of the oldest delivery',
        's',
        toSeries('age', ({ outboxAgeS }) => outboxAgeS),
      ),
    ],
  })
}
