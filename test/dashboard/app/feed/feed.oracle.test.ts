import { test } from 'bun:test'
import fc from 'fast-check'
import { createFeed } from '../../../../src/dashboard/app/feed/feed.ts'
import { toRow, type NewestPage } from '../../../../src/dashboard/app/feed/log.ts'
import type { Result } from '../../../../src/dashboard/app/request.ts'
import { createFakeClock } from '../../../support/fakes/clock.ts'
import { createFakeSocket, type FakeSocket } from '../../../support/fakes/socket.ts'

const PROJECT = 'prj_1'
const AT = '2026-11-20T10:00:00.000Z'
/** Longer than new rows wait. */
const RENDER_MS = 1_200
/** The seq of the event that opened the thread of an event; undefined if it has none. */
const toThread = (seq: number) => (seq % 4 === 1 ? seq - (seq % 20) + 1 : undefined)
const event = (seq: number) => ({
  ...{ id: `evt_${seq}`, seq, channelId: 'chn_1', channelName: 'payments', userId: null },
  ...(seq % 4 === 1 && { threadSeq: toThread(seq)! }),
  ...{ timestamp: AT, createdAt: AT, title: `Event ${seq}`, description: null, icon: null },
  ...{ tags: [], metadata: {}, source: 'api', notify: true },
})
const isMatch = (seq: number) => seq % 4 !== 0
const settle = () => new Promise(resolve => setImmediate(resolve))

interface Read {
  cursor: string | undefined
  /** The answer, once the server has read the log. */
  page: NewestPage | undefined
  answer(page: Result<NewestPage>): void
}

/** A server with a log, and the feed of a browser. Commands decide what arrives, and when. */
function open(head: number, size: number) {
  const clock = createFakeClock()
  const there = new Set<number>()
  const deleted = new Set<number>()
  const reads: Read[] = []
  let socket: FakeSocket | undefined
  let wire: { type: string; seq: number }[] = []
  let isHidden = false
  /** The matches that are the newest events of their threads, or have none. */
  const list = (until = Infinity) => {
    const all = [...there].sort((one, other) => other - one)
    const latest = new Map(all.toReversed().map(seq => [toThread(seq) ?? -seq, seq]))
    return all.filter(
      seq => seq < until && isMatch(seq) && latest.get(toThread(seq) ?? -seq) === seq,
    )
  }
  const feed = createFeed({
    project: PROJECT,
    toSearch: () => ({}),
    readPage: cursor => new Promise(answer => reads.push({ cursor, page: undefined, answer })),
    open: () => (socket = createFakeSocket()),
    check: async () => 'signed_in',
    isOnline: () => true,
    isHidden: () => isHidden,
    clock,
    random: () => 0,
    onBuild() {},
  })
  let isConnected = false

  function tell(type: 'event' | 'deleted' | 'restored', seq: number) {
    if (isConnected && (type === 'deleted' || isMatch(seq))) wire.push({ type, seq })
  }
  const pick = (some: ReadonlySet<number>, at: number) => [...some][at % some.size]

  const world = {
    append(count: number) {
      for (let nth = 0; nth < count; nth++) {
        head += 1
        there.add(head)
        tell('event', head)
      }
    },
    delete(at: number) {
      // The newest ones are the interesting ones.
      const seq = [...there].sort((one, other) => other - one)[at % 12]
      if (seq === undefined) return
      there.delete(seq)
      deleted.add(seq)
      tell('deleted', seq)
    },
    restore(at: number) {
      const seq = pick(deleted, at)
      if (seq === undefined) return
      deleted.delete(seq)
      there.add(seq)
      tell('restored', seq)
    },
    deliver(count: number) {
      for (const { type, seq } of wire.splice(0, count)) {
        const more = type === 'deleted' ? {} : { event: event(seq) }
        socket?.receive({ type, project: PROJECT, seq, ...more })
      }
    },
    /** The server reads the log for the oldest request. */
    read() {
      const one = reads.find(({ page }) => !page)
      if (!one) return
      const found = list(one.cursor === undefined ? Infinity : Number(one.cursor))
      const items = found.slice(0, size).map(seq => toRow(event(seq)))
      const last = items.at(-1)
      one.page = { items, nextCursor: found.length > size && last ? String(last.seq) : null }
    },
    async answer() {
      const [first] = reads
      if (!first?.page) return
      reads.shift()
      first.answer({ ok: true, data: first.page })
      await settle()
    },
    pause: () => feed.dispatch({ type: 'pause', reason: 'manual' }),
    resume: () => feed.dispatch({ type: 'resume' }),
    older: () => void feed.readOlder(),
    render: () => clock.pass(RENDER_MS),
    see(isSeen: number) {
      isHidden = isSeen % 2 === 0
      feed.updateVisibility()
    },
    /** Messages on the wire are lost. */
    async disconnect() {
      if (!isConnected) return
      isConnected = false
      wire = []
      socket?.end(1006)
      await settle()
    },
    connect() {
      if (isConnected) return
      feed.reconnect()
      socket?.welcome(head)
      isConnected = true
      const { after } = socket?.sent.at(-1)
      const sent = [...there].sort((one, other) => one - other)
      for (const seq of sent) if (after !== null && seq > after) tell('event', seq)
    },
  }

  /** Everything arrives. */
  async function finish() {
    world.connect()
    world.see(1)
    world.resume()
    await drain()
    // Scrolls to the end.
    feed.dispatch({ type: 'pause', reason: 'scrolled' })
    for (let nth = 0; nth < 1_000 && feed.log.value.older.kind !== 'end'; nth++) {
      void feed.readOlder()
      await drain()
    }
  }

  async function drain() {
    do {
      world.deliver(Infinity)
      world.read()
      await world.answer()
      world.render()
    } while (reads.length + wire.length > 0)
  }

  function check() {
    const seqs = feed.log.value.rows.map(({ seq }) => seq)
    const isOrdered = seqs.every((seq, at) => at === 0 || seq < seqs[at - 1]!)
    if (!isOrdered) throw new Error(`Not in order: ${seqs}`)
    const foreign = seqs.filter(seq => !isMatch(seq))
    if (foreign.length > 0) throw new Error(`No match: ${foreign}`)
  }

  function checkEnd() {
    check()
    const { rows, older } = feed.log.value
    if (older.kind !== 'end') throw new Error(`The list ends as ${JSON.stringify(older)}`)
    const shown = new Set(rows.map(({ seq }) => seq))
    const expected = new Set(list())
    const ghosts = [...shown].filter(seq => !expected.has(seq))
    const missing = [...expected].filter(seq => !shown.has(seq))
    if (ghosts.length + missing.length > 0)
      throw new Error(`Ghosts: ${ghosts}. Missing: ${missing}. Shown: ${[...shown]}`)
  }

  return { world, finish, check, checkEnd, stop: feed.stop }
}

type Name = keyof ReturnType<typeof open>['world']
const command = (name: Name, weight: number, most = 20) => ({
  weight,
  arbitrary: fc.tuple(fc.constant(name), fc.integer({ min: 1, max: most })),
})
const commands = fc.array(
  fc.oneof(
    command('append', 12, 5),
    { weight: 1, arbitrary: fc.tuple(fc.constant<Name>('append'), fc.constantFrom(300, 1_400)) },
    command('delete', 8),
    command('restore', 8),
    command('deliver', 12),
    command('read', 8),
    command('answer', 8),
    command('pause', 3),
    command('resume', 3),
    command('older', 4),
    command('render', 8),
    command('see', 2),
    command('disconnect', 2),
    command('connect', 6),
  ),
  { maxLength: 60, size: 'max' },
)

test('dashboard.md §4 a feed shows exactly the log, whatever is deleted, restored, paused or lost on the way', async () => {
  const start = fc.record({ head: fc.integer({ min: 0, max: 30 }), size: fc.constantFrom(5, 50) })
  await fc.assert(
    fc.asyncProperty(start, commands, async ({ head, size }, list) => {
      const it = open(0, size)
      try {
        it.world.append(head)
        for (const [name, count] of list) {
          await it.world[name](count)
          it.check()
        }
        await it.finish()
        it.checkEnd()
      } finally {
        it.stop()
      }
    }),
    { numRuns: Number(process.env['PROPERTY_RUNS'] ?? 150) },
  )
})
