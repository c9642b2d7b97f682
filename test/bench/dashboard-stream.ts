import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import type { CDPSession, Page } from 'playwright-core'
import { cloneDatabase, closeCluster } from '../support/servers/postgres.ts'
import { launch } from '../support/clients/chromium.ts'
import { createWatchedProject, enter, withServer } from './dashboard.ts'
import { median } from './wrk.ts'

const EVENTS_PER_S = 100
const STREAM_S = Number(process.env['STREAM_S'] ?? 60)
const LONG_FRAME_MS = 50
const READABLE_MS = 1_000
const CHANNELS = ['payments', 'sign-ups', 'deployments', 'support', 'stock']
const USERS = 50
/** The number of entries of a profile that are printed. */
const PROFILE_LINES = 25

/**
 * Streams 100 events a second into an open feed for a minute. Prints its frames, how long each row
 * was in view, and what the page took. PROFILE names a file for a profile of the processor time.
 */
export async function benchStream(): Promise<void> {
  await using browser = await launch()
  try {
    await withServer(await cloneDatabase(), async ({ sql, url }) => {
      const { account, path, post } = await createWatchedProject({ sql, url })
      const send = (nth: number) => post('/v1/events', toEvent(nth))
      for (let nth = 0; nth < 200; nth += 1) await send(nth)
      await using opened = await enter(await browser.open(), url, account)
      const { page, context } = opened
      await page.setViewportSize({ width: 1440, height: 900 })
      await page.goto(url + path)
      await page.locator('.pill').filter({ hasText: 'Live' }).waitFor()
      const session = await context.newCDPSession(page)
      await stream(page, session, send)
      if (opened.problems.length > 0) console.log('problems:', opened.problems.join('\n'))
    })
  } finally {
    await closeCluster()
  }
}

/** Titles differ, as those of orders do, so no rows are collapsed. */
function toEvent(nth: number) {
  return {
    channelName: CHANNELS[nth % CHANNELS.length],
    title: `Order ${nth} paid`,
    icon: '💰',
    description: 'Paid by card in the web shop, three items, free delivery',
    userId: `customer-${nth % USERS}`,
    tags: ['web', nth % 7 === 0 ? 'vip' : 'regular'],
    metadata: { amount: nth * 1.5, currency: 'EUR' },
  }
}

/** The notes of the page about itself. */
interface Notes {
  frames: number[]
  /** The entries `long-animation-frame`, in milliseconds, each with its dearest script. */
  longFrames: { ms: number; script: string }[]
  /** For how long each row that has left the view was whole in it. */
  inView: number[]
  samples: number
  unreadable: number
  mostRows: number
}

async function stream(
  page: Page,
  session: CDPSession,
  send: (nth: number) => Promise<unknown>,
): Promise<void> {
  await page.evaluate(takeNotes)
  await session.send('Performance.enable')
  await session.send('Profiler.enable')
  const profilePath = process.env['PROFILE']
  if (profilePath !== undefined) await session.send('Profiler.start')
  const before = await readMetrics(session)
  const heaps = [before.JSHeapUsedSize]
  const elements = [before.Nodes]
  const first = 1_000
  const count = EVENTS_PER_S * STREAM_S
  const began = performance.now()
  for (let sent = 0; sent < count; sent += 1) {
    const waitMs = began + (sent * 1_000) / EVENTS_PER_S - performance.now()
    if (waitMs > 1) await Bun.sleep(waitMs)
    void send(first + sent)
    if (sent % (EVENTS_PER_S * 15) === EVENTS_PER_S * 5) {
      const { JSHeapUsedSize, Nodes } = await readMetrics(session)
      heaps.push(JSHeapUsedSize)
      elements.push(Nodes)
    }
  }
  await page.getByText(`Order ${first + count - 1} paid`, { exact: true }).waitFor()
  const seconds = (performance.now() - began) / 1_000
  const after = await readMetrics(session)
  if (profilePath !== undefined) {
    const { profile } = await session.send('Profiler.stop')
    writeFileSync(profilePath, JSON.stringify(profile))
    printProfile(profile)
  }
  const notes = await page.evaluate(() => (globalThis as unknown as { notes: Notes }).notes)
  await session.send('HeapProfiler.collectGarbage')
  const collected = await readMetrics(session)

  const long = notes.frames.filter(ms => ms > LONG_FRAME_MS)
  console.log(
    `${EVENTS_PER_S} events/s for ${STREAM_S} s: ${notes.frames.length} frames, ` +
      `${long.length} over ${LONG_FRAME_MS} ms (aim 0), longest ${Math.max(...notes.frames).toFixed(0)} ms; ` +
      `${notes.longFrames.length} long animation frames; load ${loadavg()[0]!.toFixed(1)}`,
  )
  for (const { ms, script } of notes.longFrames.sort((a, b) => b.ms - a.ms).slice(0, 5))
    console.log(`  ${ms.toFixed(0)} ms ${script}`)
  const short = notes.inView.filter(ms => ms < READABLE_MS)
  console.log(
    `visible rows readable in ${notes.samples - notes.unreadable} of ${notes.samples} samples; ` +
      `${notes.inView.length} rows were in view, for ${median(notes.inView).toFixed(0)} ms in the median, ` +
      `${short.length} of them for less than ${READABLE_MS} ms (aim 0)`,
  )
  const share = (name: keyof Metrics) =>
    `${(((after[name] - before[name]) / seconds) * 100).toFixed(1)} %`
  console.log(
    `main thread ${share('TaskDuration')}: scripts ${share('ScriptDuration')}, ` +
      `styles ${share('RecalcStyleDuration')}, layout ${share('LayoutDuration')}`,
  )
  const toMb = (bytes: number) => (bytes / 2 ** 20).toFixed(1)
  console.log(
    `heap ${heaps.map(toMb).join(', ')} MB, ${toMb(collected.JSHeapUsedSize)} MB once collected; ` +
      `nodes ${elements.join(', ')}, ${collected.Nodes} once collected; at most ${notes.mostRows} rows`,
  )
}

/** Runs in the page. */
function takeNotes(): void {
  const notes: Notes = {
    ...{ frames: [], longFrames: [], inView: [] },
    ...{ samples: 0, unreadable: 0, mostRows: 0 },
  }
  Object.assign(globalThis, { notes })
  let last = performance.now()
  const step = (at: number) => {
    notes.frames.push(at - last)
    last = at
    requestAnimationFrame(step)
  }
  requestAnimationFrame(step)

  interface LongFrame extends PerformanceEntry {
    scripts: { duration: number; invoker: string; sourceFunctionName: string }[]
  }
  new PerformanceObserver(list => {
    for (const { duration, scripts } of list.getEntries() as LongFrame[]) {
      const [dearest] = scripts.toSorted((one, other) => other.duration - one.duration)
      const { invoker = '', sourceFunctionName = '' } = dearest ?? {}
      const script = dearest ? `${invoker} ${sourceFunctionName} ${dearest.duration} ms` : ''
      notes.longFrames.push({ ms: duration, script })
    }
  }).observe({ type: 'long-animation-frame' })

  const since = new Map<Node, number>()
  const leave = (row: Node, at: number) => {
    const from = since.get(row)
    if (from !== undefined) notes.inView.push(at - from)
    since.delete(row)
  }
  const watcher = new IntersectionObserver(
    entries => {
      for (const { target, time, intersectionRatio } of entries) {
        if (intersectionRatio < 1) leave(target, time)
        else if (!since.has(target)) since.set(target, time)
      }
    },
    { threshold: 1 },
  )
  const isRow = (node: Node) => node instanceof Element && node.matches('article')
  const feed = document.querySelector('#feed')!
  for (const row of feed.querySelectorAll('article')) watcher.observe(row)
  new MutationObserver(records => {
    for (const { addedNodes, removedNodes } of records) {
      for (const node of addedNodes) if (isRow(node)) watcher.observe(node as Element)
      for (const node of removedNodes) {
        if (!isRow(node)) continue
        leave(node, performance.now())
        watcher.unobserve(node as Element)
      }
    }
    notes.mostRows = Math.max(notes.mostRows, feed.querySelectorAll('article').length)
  }).observe(feed, { childList: true })

  const toOpacity = (element: Element | null): number =>
    element ? Number(getComputedStyle(element).opacity) * toOpacity(element.parentElement) : 1
  const isReadable = (row: Element) => {
    const { top, bottom } = row.getBoundingClientRect()
    const title = row.querySelector('h2')
    const isInView = bottom > 0 && top < innerHeight
    return !isInView || (toOpacity(title) === 1 && title?.textContent.trim() !== '')
  }
  // Measuring every frame would slow the frames down.
  setInterval(() => {
    const rows = [...feed.querySelectorAll('article')].slice(0, 30)
    notes.samples += 1
    if (rows.length === 0 || !rows.every(isReadable)) notes.unreadable += 1
  }, 500)
}

type Metrics = Record<
  | 'TaskDuration'
  | 'ScriptDuration'
  | 'LayoutDuration'
  | 'RecalcStyleDuration'
  | 'JSHeapUsedSize'
  | 'Nodes',
  number
>

async function readMetrics(session: CDPSession): Promise<Metrics> {
  const { metrics } = await session.send('Performance.getMetrics')
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value])) as Metrics
}

type Profile = Awaited<ReturnType<typeof stopProfile>>['profile']
const stopProfile = (session: CDPSession) => session.send('Profiler.stop')

/** Prints the functions that took the most time themselves. */
function printProfile({ nodes, samples = [], timeDeltas = [] }: Profile): void {
  const names = new Map(
    nodes.map(({ id, callFrame: { functionName, url, lineNumber, columnNumber } }) => [
      id,
      `${functionName || '(anonymous)'} ${url.split('/').at(-1)}:${lineNumber}:${columnNumber}`,
    ]),
  )
  const times = new Map<string, number>()
  samples.forEach((id, at) => {
    const name = names.get(id) ?? ''
    times.set(name, (times.get(name) ?? 0) + (timeDeltas[at] ?? 0) / 1_000)
  })
  const sorted = [...times].sort(([, one], [, other]) => other - one)
  for (const [name, ms] of sorted.slice(0, PROFILE_LINES))
    console.log(`  ${ms.toFixed(0).padStart(6)} ms ${name}`)
}
