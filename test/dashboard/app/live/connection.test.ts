import { describe, expect, test } from 'bun:test'
import { createConnection } from '../../../../src/dashboard/app/live/connection.ts'
import {
  createLiveSocket,
  type SessionStatus,
  type ServerMessage,
} from '../../../../src/dashboard/app/live/socket.ts'
import type { ConnectionState } from '../../../../src/dashboard/app/live/pill.ts'
import { createFakeClock } from '../../../support/fakes/clock.ts'
import { createFakeSocket, EPOCH, type FakeSocket } from '../../../support/fakes/socket.ts'

const PROJECT = 'prj_1'

function follow({ standing = 'signed_in' as SessionStatus, isOnline = true, watch = false } = {}) {
  const clock = createFakeClock()
  const sockets: FakeSocket[] = []
  const links: ConnectionState[] = []
  const messages: ServerMessage[] = []
  const starts: [number, boolean][] = []
  const builds: string[] = []
  const resumes: string[] = []
  const world = { isOnline, standing }
  const environment = {
    open() {
      const socket = createFakeSocket()
      sockets.push(socket)
      return socket
    },
    check: async () => world.standing,
    isOnline: () => world.isOnline,
    clock,
    random: () => 1,
    onBuild: (build: string) => builds.push(build),
    onConnectionState: (link: ConnectionState) => links.push(link),
  }
  const connection = watch
    ? createLiveSocket({
        ...environment,
        greet: () => ({ type: 'watch' }),
        receive: message => message.type === 'heads',
      })
    : createConnection({
        ...environment,
        project: PROJECT,
        toSearch: () => ({ q: 'channel:chn_1' }),
        onStart: (head, isBroken) => starts.push([head, isBroken]),
        onResume: () => resumes.push('resume'),
        onMessage: message => messages.push(message),
      })
  return {
    ...{ connection, clock, sockets, links, starts, resumes, builds, world },
    get socket() {
      return sockets.at(-1)!
    },
    /** The seqs of the received events. */
    get seqs() {
      return messages.flatMap(message => (message.type === 'event' ? [message.seq] : []))
    },
    get kinds() {
      return links.map(({ kind }) => kind)
    },
  }
}

const event = (seq: number) => ({ type: 'event', project: PROJECT, seq, event: {} })
const settle = () => new Promise(resolve => setImmediate(resolve))

describe("design §6 the feed's protocol", () => {
  test('starts now, and continues from the last seq after a disconnection', () => {
    const feed = follow()
    feed.socket.welcome(10)
    expect(feed.socket.sent).toEqual([
      {
        type: 'subscribe',
        project: PROJECT,
        after: null,
        epoch: EPOCH,
        search: { q: 'channel:chn_1' },
      },
    ])
    for (const seq of [11, 13, 13, 11]) feed.socket.receive(event(seq))
    feed.socket.receive({ ...event(12), project: 'prj_other' })
    feed.socket.end(1001)
    feed.clock.pass(500)
    feed.socket.welcome(15)
    expect(feed.socket.sent[0].after).toBe(13)
    for (const seq of [14, 15, 16]) feed.socket.receive(event(seq))
    expect(feed.seqs).toEqual([11, 13, 14, 15, 16])
    expect([feed.starts, feed.resumes]).toEqual([[[10, false]], ['resume']])
    expect(feed.kinds).toEqual(['connecting', 'live', 'reconnecting', 'connecting', 'live'])
  })

  test('moves the cursor on heartbeats over filtered events', () => {
    const feed = follow()
    feed.socket.welcome(5)
    feed.socket.receive({ type: 'heartbeat', project: PROJECT, head: 900 })
    feed.socket.end(1013)
    feed.clock.pass(500)
    feed.socket.welcome(900)
    expect(feed.socket.sent[0].after).toBe(900)
  })

  test('reports a gap, and continues from the head', () => {
    const feed = follow()
    feed.socket.welcome(5)
    feed.socket.receive({ type: 'gap', project: PROJECT, reason: 'retention', head: 40 })
    for (const seq of [39, 40, 41]) feed.socket.receive(event(seq))
    expect(feed.starts).toEqual([
      [5, false],
      [40, true],
    ])
    expect(feed.seqs).toEqual([41])
  })

  test('starts anew in another epoch: the old seq has no meaning there', () => {
    const feed = follow()
    feed.socket.welcome(500)
    feed.socket.end(1012)
    feed.clock.pass(500)
    feed.socket.welcome(7, 'another')
    expect(feed.socket.sent[0]).toMatchObject({ after: null, epoch: 'another' })
    feed.socket.receive(event(8))
    expect([feed.starts.at(-1), feed.seqs]).toEqual([[7, true], [8]])
  })

  test('one socket watches all projects, and says which build the server serves', () => {
    const all = follow({ watch: true })
    all.socket.receive({ type: 'hello', epoch: EPOCH, build: 'abc' })
    expect([all.socket.sent, all.builds]).toEqual([[{ type: 'watch' }], ['abc']])
    all.socket.receive({ type: 'heads', heads: { prj_1: 3 } })
    all.socket.receive({ type: 'heads', heads: { prj_1: 4 } })
    all.socket.end(1001)
    all.clock.pass(500)
    expect(all.kinds).toEqual(['connecting', 'live', 'reconnecting', 'connecting'])
  })

  test.each(['', '{', 'null', '[]', '{"type":"event"}', '{"type":"toString"}', '{"type":"news"}'])(
    'ignores unknown messages of newer servers: %p',
    text => {
      const feed = follow()
      feed.socket.welcome(0)
      feed.socket.onmessage?.call({} as WebSocket, { data: text } as MessageEvent)
      feed.socket.receive(event(1))
      expect(feed.seqs).toEqual([1])
    },
  )
})

describe('a failing connection', () => {
  test('is closed after 35 s of silence and made again', () => {
    const feed = follow()
    feed.socket.welcome(0)
    feed.clock.pass(30_000)
    feed.socket.receive({ type: 'heartbeat', project: PROJECT, head: 0 })
    feed.clock.pass(34_000)
    expect(feed.kinds.at(-1)).toBe('live')
    feed.clock.pass(1_000)
    expect([feed.kinds.at(-1), feed.sockets[0]?.isClosed]).toEqual(['reconnecting', true])
  })

  test('retries with growing delays, and resets them after a success', async () => {
    const feed = follow({ standing: 'unreachable' })
    const waits: number[] = []
    for (let attempt = 0; attempt < 8; attempt++) {
      feed.socket.end(1006)
      await settle()
      const link = feed.links.at(-1)
      if (link?.kind !== 'reconnecting') throw new Error('It does not try again')
      waits.push(link.atMs - feed.clock.now())
      feed.clock.pass(link.atMs - feed.clock.now())
    }
    expect(waits).toEqual([500, 1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000])
    feed.socket.welcome(0)
    feed.socket.end(1006)
    expect(feed.links.at(-1)).toEqual({ kind: 'reconnecting', atMs: feed.clock.now() + 500 })
  })

  test('is checked when the browser wakes up, for its timers slept', () => {
    const feed = follow()
    feed.socket.welcome(0)
    feed.connection.wake()
    expect(feed.sockets).toHaveLength(1)
    feed.clock.pass(21_000)
    feed.connection.wake()
    expect(feed.sockets).toHaveLength(2)
  })

  test('waits for the network and reconnects with it', () => {
    const feed = follow()
    feed.socket.welcome(3)
    feed.world.isOnline = false
    feed.connection.sleep()
    feed.clock.pass(600_000)
    expect([feed.sockets.length, feed.kinds.at(-1)]).toEqual([1, 'offline'])
    feed.world.isOnline = true
    feed.connection.wake()
    feed.socket.welcome(9)
    expect([feed.socket.sent[0].after, feed.kinds.at(-1)]).toEqual([3, 'live'])
  })

  test('tries a server on the same machine without a network', async () => {
    const feed = follow({ isOnline: false })
    feed.socket.welcome(3)
    expect(feed.kinds.at(-1)).toBe('live')
    feed.socket.end(1006)
    await settle()
    feed.clock.pass(600_000)
    expect([feed.sockets.length, feed.kinds.at(-1)]).toEqual([1, 'offline'])
    feed.connection.retry()
    feed.socket.welcome(3)
    expect(feed.kinds.at(-1)).toBe('live')
  })

  test.each<[string, number, boolean, SessionStatus, string]>([
    ['a handshake refused after the end of the session', 1006, false, 'signed_out', 'signed_out'],
    ['a handshake refused by the network', 1006, false, 'unreachable', 'reconnecting'],
    ['a handshake refused by a full server', 1006, false, 'signed_in', 'reconnecting'],
    ['1008 after a sign-out', 1008, true, 'signed_out', 'signed_out'],
    ['1008 after the loss of the project', 1008, true, 'signed_in', 'refused'],
    ['1008 and nobody to ask', 1008, true, 'unreachable', 'reconnecting'],
    ['1001, the server stops', 1001, true, 'signed_out', 'reconnecting'],
    ['1013, too slow', 1013, true, 'signed_out', 'reconnecting'],
  ])('%s: %d', async (_, code, hasBegun, standing, kind) => {
    const feed = follow({ standing })
    if (hasBegun) feed.socket.welcome(0)
    feed.socket.end(code)
    await settle()
    expect(feed.kinds.at(-1)).toBe(kind as ConnectionState['kind'])
    feed.clock.pass(60_000)
    expect(feed.sockets.length > 1).toBe(kind === 'reconnecting')
  })

  test('ends with an unknown project', () => {
    const feed = follow()
    feed.socket.receive({ type: 'hello', epoch: EPOCH, build: '' })
    feed.socket.receive({ type: 'error', code: 'not_found', message: 'No project has this id' })
    feed.connection.sleep()
    feed.connection.wake()
    expect([feed.kinds.at(-1), feed.sockets.length, feed.clock.waiting]).toEqual(['refused', 1, 0])
  })

  test.each([
    ['an error of the server', { type: 'error', code: 'too_many', message: 'A socket is full' }],
    ['an error of the server', { type: 'error', code: 'invalid', message: 'filters: Too long' }],
    ['a close', 1013],
  ])('%s before the stream starts is told, and retried on request: %p', (_, told) => {
    const feed = follow()
    if (typeof told === 'number') feed.socket.end(told)
    else {
      feed.socket.receive({ type: 'hello', epoch: EPOCH, build: '' })
      feed.socket.receive(told)
    }
    const reason = typeof told === 'number' ? 'Too many pages are open' : told.message
    expect(feed.links.at(-1)).toEqual({ kind: 'rejected', reason })
    expect([feed.clock.waiting, feed.socket.isClosed]).toEqual([0, true])
    feed.connection.retry()
    feed.socket.welcome(1)
    expect(feed.kinds.at(-1)).toBe('live')
  })

  test('leaves neither socket nor timer when stopped', () => {
    const feed = follow()
    feed.socket.welcome(0)
    feed.connection.stop()
    feed.connection.retry()
    expect([feed.socket.isClosed, feed.clock.waiting, feed.sockets.length]).toEqual([true, 0, 1])
  })
})
