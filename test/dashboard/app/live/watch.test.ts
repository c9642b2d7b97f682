import { expect, test } from 'bun:test'
import { createWatch, type Heads } from '../../../../src/dashboard/app/live/watch.ts'
import { createFakeClock } from '../../../support/fakes/clock.ts'
import { createFakeSocket, EPOCH, type FakeSocket } from '../../../support/fakes/socket.ts'

function watch() {
  const clock = createFakeClock()
  const sockets: FakeSocket[] = []
  const told: Heads[] = []
  const states: boolean[] = []
  const world = { isOnline: true, refused: 0 }
  const watching = createWatch({
    open() {
      const socket = createFakeSocket()
      sockets.push(socket)
      return socket
    },
    isOnline: () => world.isOnline,
    clock,
    random: () => 1,
    onHeads: heads => told.push(heads),
    onLive: isLive => states.push(isLive),
    onRefused: () => (world.refused += 1),
  })
  return {
    ...{ watching, clock, sockets, told, states, world },
    get socket() {
      return sockets.at(-1)!
    },
  }
}

test('watches after hello, and again over a new socket when one is lost', () => {
  const it = watch()
  it.socket.receive({ type: 'hello', epoch: EPOCH })
  expect(it.socket.sent).toEqual([{ type: 'watch' }])
  it.socket.receive({ type: 'heads', heads: { prj_1: 3 } })
  it.socket.receive({ type: 'heartbeat' })
  expect([it.told, it.states]).toEqual([[{ prj_1: 3 }], [true]])
  it.socket.end(1001)
  expect([it.sockets.length, it.states.at(-1)]).toEqual([1, false])
  it.clock.pass(500)
  expect(it.sockets.length).toBe(2)
  it.socket.receive({ type: 'hello', epoch: EPOCH })
  it.socket.receive({ type: 'heads', heads: { prj_1: 5 } })
  expect([it.told.at(-1), it.states.at(-1)]).toEqual([{ prj_1: 5 }, true])
})

test('replaces a silent socket, and waits longer after each failure', () => {
  const it = watch()
  it.clock.pass(34_999)
  expect(it.sockets.length).toBe(1)
  it.clock.pass(1)
  expect(it.sockets[0]?.isClosed).toBe(true)
  it.clock.pass(500)
  expect(it.sockets.length).toBe(2)
  it.socket.end(1006)
  it.clock.pass(999)
  expect(it.sockets.length).toBe(2)
  it.clock.pass(1)
  expect(it.sockets.length).toBe(3)
})

test('waits for the network, and connects when it is back', () => {
  const it = watch()
  it.world.isOnline = false
  it.socket.end(1006)
  it.clock.pass(60_000)
  expect(it.sockets.length).toBe(1)
  it.watching.wake()
  expect(it.sockets.length).toBe(2)
  // A socket that is fine stays.
  it.watching.wake()
  expect(it.sockets.length).toBe(2)
})

test('ends with the session, and when it is stopped', () => {
  const it = watch()
  it.socket.end(1008)
  it.clock.pass(60_000)
  expect([it.world.refused, it.sockets.length, it.clock.waiting]).toEqual([1, 1, 0])
  const other = watch()
  other.watching.stop()
  expect([other.socket.isClosed, other.clock.waiting]).toEqual([true, 0])
})
