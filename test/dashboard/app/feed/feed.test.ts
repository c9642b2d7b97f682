import { describe, expect, test } from 'bun:test'
import { createFeed } from '../../../../src/dashboard/app/feed/feed.ts'
import { LIVE_ENTRIES } from '../../../../src/dashboard/app/feed/log.ts'
import type { NewestPage, Row } from '../../../../src/dashboard/app/feed/log.ts'
import { toFailure, type Result } from '../../../../src/dashboard/app/request.ts'
import { createFakeClock } from '../../../support/fakes/clock.ts'
import { createFakeSocket, type FakeSocket } from '../../../support/fakes/socket.ts'

const PROJECT = 'prj_1'
const AT = '2026-11-20T10:00:00.000Z'
const event = (seq: number, title = `Event ${seq}`) => ({
  ...{ id: `evt_${seq}`, seq, channelId: 'chn_1', channelName: 'payments', userId: null },
  ...{ timestamp: AT, createdAt: AT, title, description: null, icon: null },
  ...{ tags: [], metadata: {}, source: 'api', notify: true },
})
const message = (seq: number, title?: string) => ({
  ...{ type: 'event', project: PROJECT, seq, event: event(seq, title) },
})
const row = (seq: number, title?: string) =>
  ({ ...event(seq, title), atMs: Date.parse(AT), receivedMs: Date.parse(AT) }) satisfies Row

/** Returns the feed of a server whose log has `head` events, and pages of `size`. */
function start(
  head: number,
  {
    size = 50,
    title,
    everyMs,
    q,
  }: { size?: number; title?: string; everyMs?: number; q?: string | undefined } = {},
) {
  const clock = createFakeClock()
  const sockets: FakeSocket[] = []
  const reads: { cursor: string | undefined; answer(page: Result<NewestPage>): void }[] = []
  const world = {
    ...{ isHidden: false, head, deleted: new Set<number>() },
    ...{ unseen: [] as number[], shown: [] as number[], counts: 0 },
  }
  const feed = createFeed({
    project: PROJECT,
    toSearch: () => (q === undefined ? {} : { q }),
    everyMs,
    readPage: cursor => new Promise(answer => reads.push({ cursor, answer })),
    open() {
      const socket = createFakeSocket()
      sockets.push(socket)
      return socket
    },
    check: async () => 'signed_in',
    isOnline: () => true,
    isHidden: () => world.isHidden,
    clock,
    random: () => 0,
    onBuild() {},
    onUnseen: count => world.unseen.push(count),
    onShown: rows => world.shown.push(...rows.map(({ seq }) => seq)),
    onChannels: () => (world.counts += 1),
  })
  const settle = () => new Promise(resolve => setImmediate(resolve))
  return {
    ...{ feed, clock, world, reads, settle },
    get socket() {
      return sockets.at(-1)!
    },
    get seqs() {
      return feed.log.value.rows.map(({ seq }) => seq)
    },
    /** Answers the oldest pending read as the server would. */
    async page() {
      const { cursor, answer } = reads.shift()!
      const newest = cursor === undefined ? world.head : Number(cursor) - 1
      const oldest = Math.max(1, newest - size + 1)
      const items = Array.from({ length: newest - oldest + 1 }, (_, at) =>
        row(newest - at, title),
      ).filter(({ seq }) => !world.deleted.has(seq))
      answer({ ok: true, data: { items, nextCursor: oldest > 1 ? String(oldest) : null } })
      await settle()
    },
    async fail(retryAfterS?: number) {
      const failure = toFailure({ code: 'x', message: 'No.', retryAfterS })
      reads.shift()!.answer({ ok: false, failure })
      await settle()
    },
    emit(count = 1) {
      for (let n = 0; n < count; n++) {
        world.head += 1
        sockets.at(-1)!.receive(message(world.head, title))
      }
    },
  }
}

describe('dashboard.md §4 a feed', () => {
  test('shows the newest page, and then each new event, at most every 300 ms', async () => {
    const it = start(3)
    it.socket.welcome(3)
    await it.page()
    expect(it.seqs).toEqual([3, 2, 1])
    it.clock.pass(1_000)
    it.emit(2)
    expect(it.seqs).toEqual([4, 3, 2, 1])
    it.emit(1)
    it.clock.pass(299)
    expect(it.seqs[0]).toBe(4)
    it.clock.pass(1)
    expect(it.seqs).toEqual([6, 5, 4, 3, 2, 1])
    expect(it.world.shown).toEqual([4, 6, 5])
  })

  test('keeps rows for a second before many new ones push them away', async () => {
    const it = start(3)
    it.socket.welcome(3)
    await it.page()
    const shownMs: number[] = []
    let shown = it.seqs[0]
    // 100 events a second.
    for (let ms = 0; ms < 10_000; ms += 10) {
      it.emit()
      if (it.seqs[0] !== shown) shownMs.push(ms)
      shown = it.seqs[0]
      it.clock.pass(10)
    }
    const pauses = shownMs.slice(1).map((ms, at) => ms - shownMs[at]!)
    expect(pauses.length).toBeGreaterThan(6)
    expect(Math.min(...pauses)).toBeGreaterThanOrEqual(1_000)
    it.clock.pass(1_200)
    expect(it.seqs.slice(0, 200)).toEqual(Array.from({ length: 200 }, (_, at) => 1_003 - at))
  })

  test('shows few new rows at once, also right after others', async () => {
    const it = start(3)
    it.socket.welcome(3)
    await it.page()
    for (let head = 5; head < 25; head += 2) {
      it.emit(2)
      it.clock.pass(300)
      expect(it.seqs[0]).toBe(head)
    }
  })

  test('reads the page again if the connection started during the first read', async () => {
    const it = start(3)
    it.socket.welcome(5)
    await it.page()
    it.world.head = 5
    await it.page()
    expect([it.seqs, it.reads.length]).toEqual([[5, 4, 3, 2, 1], 0])
  })

  test('reads rows that the time decides about again, and while hidden not before it is seen', async () => {
    const it = start(3, { everyMs: 60_000 })
    it.socket.welcome(3)
    await it.page()
    it.world.deleted.add(1)
    it.clock.pass(59_999)
    expect(it.reads.length).toBe(0)
    it.clock.pass(1)
    await it.page()
    expect(it.seqs).toEqual([3, 2])
    it.world.isHidden = true
    it.world.deleted.add(2)
    it.clock.pass(600_000)
    expect(it.reads.length).toBe(0)
    it.world.isHidden = false
    it.feed.updateVisibility()
    await it.page()
    expect(it.seqs).toEqual([3])
    it.clock.pass(60_000)
    await it.fail()
    it.clock.pass(60_000)
    await it.page()
    it.clock.pass(59_999)
    expect(it.reads.length).toBe(0)
  })

  test('reads the rows of a search again that has an open thread, once the log has grown', async () => {
    for (const [q, state, reads] of [
      ['state:firing', 'firing', 1],
      ['state:resolved', 'resolved', 0],
      ['-state:resolved', undefined, 1],
      [undefined, 'firing', 0],
    ] as const) {
      const it = start(3, { q })
      it.socket.welcome(3)
      await it.page()
      const update = { ...message(4), event: { ...event(4), thread: 'disk', threadSeq: 4, state } }
      it.socket.receive(update)
      it.socket.receive({ type: 'heartbeat', project: PROJECT, head: 5 })
      it.clock.pass(1_000)
      expect([q, it.reads.length]).toEqual([q, reads])
      it.socket.receive({ type: 'heartbeat', project: PROJECT, head: 5 })
      it.clock.pass(1_000)
      expect([q, it.reads.length]).toEqual([q, reads])
    }
  })

  test('counts what is unread again after each heartbeat of a log that grew or was restored', async () => {
    const it = start(9)
    it.socket.welcome(9)
    await it.page()
    const counts = []
    for (const head of [9, 9, 4, 4, 5]) {
      it.socket.receive({ type: 'heartbeat', project: PROJECT, head })
      counts.push(it.world.counts)
    }
    expect(counts).toEqual([1, 1, 2, 2, 3])
  })

  test('keeps its rows during a gap until the newest page arrives, and loses nothing afterwards', async () => {
    const it = start(3)
    it.socket.welcome(3)
    await it.page()
    it.world.head = 90
    it.socket.receive({ type: 'gap', project: PROJECT, reason: 'retention', head: 90 })
    expect(it.seqs).toEqual([3, 2, 1])
    it.emit(1)
    it.clock.pass(300)
    it.world.head = 90
    await it.page()
    it.clock.pass(300)
    expect(it.seqs.slice(0, 3)).toEqual([91, 90, 89])
    expect(it.seqs).not.toContain(3)
  })

  test('retries a failed page on request and on the next connection', async () => {
    const it = start(3)
    it.socket.welcome(3)
    await it.fail()
    expect(it.feed.reading.value).toMatchObject({ kind: 'failed', page: 'first' })
    it.feed.retry()
    expect(it.feed.reading.value).toEqual({ kind: 'first' })
    await it.page()
    expect(it.seqs).toEqual([3, 2, 1])
  })

  describe('after a lost connection', () => {
    /** Loses the connection, changes events, and connects again. */
    function reconnect(it: ReturnType<typeof start>, change: () => void) {
      it.socket.end(1001)
      change()
      it.clock.pass(250)
      it.socket.welcome(it.world.head)
    }

    test('keeps the place of a paused reader, and what waits for them', async () => {
      const it = start(120)
      it.socket.welcome(120)
      await it.page()
      void it.feed.readOlder()
      await it.page()
      it.feed.dispatch({ type: 'pause', reason: 'scrolled' })
      const before = it.seqs
      reconnect(it, () => {
        it.world.head = 250
        for (const seq of [60, 200]) it.world.deleted.add(seq)
      })
      for (let seq = 121; seq <= 250; seq++) if (seq !== 200) it.socket.receive(message(seq))
      while (it.reads.length > 0) await it.page()
      expect(it.seqs).toEqual(before.filter(seq => seq !== 60))
      expect(it.feed.live.value.waiting).toBe(129)
    })

    test('reads no more than a live list shows', async () => {
      const it = start(50)
      it.socket.welcome(50)
      await it.page()
      reconnect(it, () => (it.world.head = 5_000))
      let count = 0
      for (; it.reads.length > 0; count++) await it.page()
      expect(count).toBe(LIVE_ENTRIES / 50)
      expect(it.seqs).toEqual(Array.from({ length: LIVE_ENTRIES }, (_, at) => 5_000 - at))
      void it.feed.readOlder()
      await it.page()
      expect(it.seqs.length).toBe(LIVE_ENTRIES + 50)
    })

    test('shows new events also while its rows are read again, and if that fails', async () => {
      const it = start(3)
      it.socket.welcome(3)
      await it.page()
      reconnect(it, () => it.world.deleted.add(2))
      it.clock.pass(1_000)
      it.emit()
      expect(it.seqs).toEqual([4, 3, 2, 1])
      await it.fail()
      it.emit()
      it.clock.pass(1_000)
      expect(it.seqs).toEqual([5, 4, 3, 2, 1])
      await it.page()
      expect(it.seqs).toEqual([5, 4, 3, 1])
    })

    test('repeats a failed read of its rows by itself, and loads older rows meanwhile', async () => {
      const it = start(120)
      it.socket.welcome(120)
      await it.page()
      reconnect(it, () => it.world.deleted.add(119))
      await it.fail(5)
      expect(it.feed.reading.value.kind).toBe('nothing')
      void it.feed.readOlder()
      await it.page()
      it.clock.pass(4_999)
      expect([it.seqs.length, it.reads.length]).toEqual([100, 0])
      it.clock.pass(1)
      await it.page()
      await it.fail()
      it.clock.pass(250)
      while (it.reads.length > 0) await it.page()
      expect([it.seqs.length, it.seqs.includes(119)]).toEqual([99, false])
    })

    test('does not repeat a failed read after it was stopped, or when another one has begun', async () => {
      const it = start(3)
      it.socket.welcome(3)
      await it.page()
      reconnect(it, () => {})
      await it.fail(5)
      reconnect(it, () => {})
      await it.page()
      it.clock.pass(5_000)
      expect(it.reads).toHaveLength(0)
      reconnect(it, () => {})
      await it.fail(5)
      it.feed.stop()
      expect(it.clock.waiting).toBe(0)
    })

    test('requests no more pages of a read that another one replaces, or that is stopped', async () => {
      const it = start(300)
      it.socket.welcome(300)
      await it.page()
      it.feed.dispatch({ type: 'pause', reason: 'scrolled' })
      for (let n = 0; n < 3; n++) {
        void it.feed.readOlder()
        await it.page()
      }
      reconnect(it, () => {})
      reconnect(it, () => {})
      expect(it.reads).toHaveLength(2)
      await it.page()
      expect(it.reads).toHaveLength(1)
      await it.page()
      expect(it.reads).toHaveLength(1)
      it.feed.stop()
      await it.page()
      expect(it.reads).toHaveLength(0)
    })

    test('keeps the collapsed rows of a live list', async () => {
      const it = start(50, { title: 'Paid' })
      it.socket.welcome(50)
      await it.page()
      it.emit(400)
      it.clock.pass(1_200)
      reconnect(it, () => (it.world.head += 1))
      while (it.reads.length > 0) await it.page()
      expect(it.seqs).toEqual(Array.from({ length: 450 }, (_, at) => 451 - at))
    })

    test('keeps the place of a reader who scrolls while the rows are read again', async () => {
      const it = start(50)
      it.socket.welcome(50)
      await it.page()
      reconnect(it, () => (it.world.head = 400))
      await it.page()
      it.feed.dispatch({ type: 'pause', reason: 'scrolled' })
      while (it.reads.length > 0) await it.page()
      expect(it.seqs).toEqual(Array.from({ length: 50 }, (_, at) => 50 - at))
      expect(it.feed.live.value.waiting).toBe(350)
    })

    test('keeps the place of a paused reader also if their rows are too far away', async () => {
      const it = start(10, { size: 5 })
      it.socket.welcome(10)
      await it.page()
      it.feed.dispatch({ type: 'pause', reason: 'scrolled' })
      reconnect(it, () => (it.world.head = 1_000))
      while (it.reads.length > 0) await it.page()
      expect(it.seqs).toEqual([10, 9, 8, 7, 6])
      expect(it.feed.live.value.waiting).toBe(500)
      it.feed.dispatch({ type: 'resume' })
      expect(it.seqs).toEqual(Array.from({ length: LIVE_ENTRIES }, (_, at) => 1_000 - at))
    })
  })

  test('does not change after it was stopped', async () => {
    const it = start(3)
    it.socket.welcome(3)
    it.feed.stop()
    await it.page()
    it.clock.pass(1_000)
    expect([it.seqs, it.clock.waiting, it.socket.isClosed]).toEqual([[], 0, true])
  })
})
