import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join, resolve } from 'node:path'
import { closeCluster } from '../support/servers/postgres.ts'
import { measureWorld, startReceiver, type Figures, type Offered } from './cost-measure.ts'
import { buildWorld, copyWorld, type Shape } from './cost-world.ts'
import { plot, type Panel } from './plot.ts'
import { median, requireWrk } from './wrk.ts'

const DOCS = resolve(import.meta.dir, '../../docs')
const DATA = join(DOCS, 'cost.json')
const ROUNDS = 3
const BASE: Shape = { events: 0, channels: 20, sockets: 1, endpoints: 1, projects: 1 }

interface Axis {
  title: string
  xLabel: string
  points: number[]
  shape(x: number): Partial<Shape>
  offered(x: number): Offered
}

const modestly = () => ({ perSecond: 100, seconds: 4 })

const AXES: Record<keyof Shape, Axis> = {
  events: {
    title: 'More events in the database',
    xLabel: 'events',
    points: [1e3, 1e4, 1e5, 1e6, 1e7],
    shape: events => ({ events }),
    offered: modestly,
  },
  channels: {
    title: 'More channels posted to',
    xLabel: 'channels',
    points: [1, 10, 100, 1e3, 1e4],
    shape: channels => ({ channels }),
    offered: modestly,
  },
  sockets: {
    title: 'More sockets that follow one project',
    xLabel: 'sockets',
    points: [1, 10, 100, 1e3, 1e4],
    shape: sockets => ({ sockets }),
    offered: () => ({ perSecond: 5, seconds: 8, isElsewhere: true }),
  },
  endpoints: {
    title: 'More webhooks that an event is for',
    xLabel: 'webhooks',
    points: [1, 10, 100, 1e3],
    shape: endpoints => ({ endpoints }),
    // Deliveries per second stay the same.
    offered: endpoints => ({ perSecond: 300 / endpoints, seconds: Math.max(4, endpoints / 70) }),
  },
  projects: {
    title: 'More projects, each followed, posted to and with a webhook',
    xLabel: 'projects',
    points: [1, 10, 100, 1e3, 1e4],
    shape: projects => ({ projects, channels: 1 }),
    offered: modestly,
  },
}

type Point = { x: number } & Figures

/** The data of the plots: medians of interleaved rounds. */
interface Run {
  on: string
  cores: number
  rounds: number
  points: Point[]
}

/**
 * `bench cost [axis …] [--quick] [--draw]` measures ingest, delays and memory while one axis grows
 * and all others stay. Writes the figures and a plot of each axis. `--quick` measures one round,
 * `--draw` none.
 */
export async function benchCost(): Promise<void> {
  const words = process.argv.slice(3)
  const names = words.filter(word => !word.startsWith('--'))
  for (const name of names)
    if (!(name in AXES))
      throw new Error(`There is no axis ${name}; there are: ${Object.keys(AXES).join(', ')}`)
  const wanted = (names.length > 0 ? names : Object.keys(AXES)) as (keyof Shape)[]
  if (!words.includes('--draw')) {
    requireWrk()
    const receiver = startReceiver()
    try {
      for (const name of wanted)
        keep(name, await run(name, { receiver, rounds: words.includes('--quick') ? 1 : ROUNDS }))
    } finally {
      receiver.stop()
      await closeCluster()
    }
  }
  draw()
}

/** Measures all points in each round, so that a slow minute of the machine affects all of them. */
async function run(
  name: keyof Shape,
  { receiver, rounds }: { receiver: ReturnType<typeof startReceiver>; rounds: number },
): Promise<Run> {
  const { points, shape, offered } = AXES[name]
  const worlds = []
  for (const x of points) {
    console.log(`${name} ${x}: creating it`)
    worlds.push({ x, world: await buildWorld({ ...BASE, ...shape(x) }, receiver.url) })
  }
  const measured = new Map<number, Figures[]>(points.map(x => [x, []]))
  for (let round = 0; round < rounds; round++) {
    for (const { x, world } of worlds) {
      const copy = await copyWorld(world)
      const figures = await measureWorld(copy, { receiver, offered: offered(x) })
      measured.get(x)?.push(figures)
      console.log(name, x, figures)
    }
  }
  return {
    on: new Date().toISOString().slice(0, 10),
    cores: availableParallelism(),
    rounds,
    points: [...measured].map(([x, all]) => ({ x, ...toMedians(all) })),
  }
}

function toMedians(all: Figures[]): Figures {
  const middle = (name: keyof Figures) => Number(median(all.map(one => one[name])).toPrecision(4))
  return {
    ingest: middle('ingest'),
    feedP50: middle('feedP50'),
    feedP99: middle('feedP99'),
    hookP50: middle('hookP50'),
    hookP99: middle('hookP99'),
    memory: middle('memory'),
  }
}

function read(): Partial<Record<keyof Shape, Run>> {
  return existsSync(DATA) ? JSON.parse(readFileSync(DATA, 'utf8')) : {}
}

function keep(name: keyof Shape, run: Run): void {
  writeFileSync(DATA, `${JSON.stringify({ ...read(), [name]: run }, null, 2)}\n`)
}

/** Draws a plot of each axis that was ever measured. */
function draw(): void {
  for (const [name, run] of Object.entries(read()) as [keyof Shape, Run][]) {
    const { title, xLabel } = AXES[name]
    const path = join(DOCS, `cost-${name}.svg`)
    writeFileSync(path, plot({ title, panels: toPanels(run.points, xLabel), columns: 3 }))
    console.log(`${path}: ${run.rounds} rounds on ${run.on}`)
  }
}

function toPanels(points: Point[], xLabel: string): Panel[] {
  const line = (name: string, figure: keyof Figures) => ({
    name,
    points: points.map(point => [point.x, point[figure]] as const),
  })
  return [
    {
      title: 'Ingest, 64 connections',
      unit: 'events/s',
      x: 'log',
      y: 'linear',
      xLabel,
      series: [line('', 'ingest')],
    },
    {
      title: 'From POST to socket and receiver',
      unit: 'ms',
      x: 'log',
      y: 'log',
      xLabel,
      series: [
        line('feed p50', 'feedP50'),
        line('feed p99', 'feedP99'),
        line('webhook p50', 'hookP50'),
        line('webhook p99', 'hookP99'),
      ],
    },
    {
      title: "The server's memory",
      unit: 'MB',
      x: 'log',
      y: 'linear',
      xLabel,
      series: [line('', 'memory')],
    },
  ]
}
