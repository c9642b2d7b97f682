import { afterAll, beforeEach, expect, spyOn, test } from 'bun:test'
import { serve } from '../../src/base/platform.ts'
import { newCall, succeedFile } from '../../src/http/call.ts'
import { openRaw, type RawConnection } from '../support/clients/raw-http.ts'
import { captureLog } from '../support/log.ts'
import { until } from '../support/until.ts'

/** A download whose parts come when a test says so. */
interface Download {
  client: RawConnection
  /** The parts that the server has asked for. */
  parts: PromiseWithResolvers<string>[]
  isReleased: boolean
  /** True when nothing more is read. */
  isEnded: boolean
}

const begun: Download[] = []

async function* read(download: Download) {
  try {
    for (;;) {
      const part = Promise.withResolvers<string>()
      download.parts.push(part)
      yield await part.promise
    }
  } finally {
    download.isEnded = true
  }
}

const server = serve({
  port: 0,
  host: '127.0.0.1',
  maxBodyBytes: 1,
  maxFrameBytes: 1,
  maxBufferedBytes: 1,
  async fetch() {
    const download = begun.at(-1)!
    const call = Object.assign(newCall('GET'), { guard: 'session' as const })
    call.release = () => (download.isReleased = true)
    return succeedFile(call, { name: 'a.txt', contentType: 'text/plain', parts: read(download) })
  },
  upgrade: () => new Response(),
  open() {},
  message() {},
  close() {},
})
afterAll(() => server.stop())
beforeEach(() => void (begun.length = 0))

/** Requests a download, and resolves when the server reads its first part. */
async function request(): Promise<Download> {
  const client = openRaw(`http://127.0.0.1:${server.port}`)
  const download: Download = { client, parts: [], isReleased: false, isEnded: false }
  begun.push(download)
  client.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await until(() => download.parts.length === 1)
  return download
}

/** Requests a download, and resolves when the server reads its second part. */
async function begin(): Promise<Download> {
  const download = await request()
  download.parts[0]!.resolve('first')
  await until(() => download.parts.length === 2)
  return download
}

test.each<[string, (part: PromiseWithResolvers<string>) => void]>([
  ['comes', part => part.resolve('second')],
  ['fails', part => part.reject(new Error('too late'))],
])(
  'a client that leaves before a part %s leaves no warning, and frees its slot',
  async (_, end) => {
    using log = captureLog()
    const download = await begin()
    download.client[Symbol.dispose]()
    await until(() => download.isReleased)
    end(download.parts[1]!)
    await until(() => download.isEnded)
    expect([download.parts.length, log.lines]).toEqual([2, []])
  },
)

test('a client that leaves before the first part leaves no warning, and frees its slot', async () => {
  using log = captureLog()
  const download = await request()
  download.client[Symbol.dispose]()
  await download.client.closed
  download.parts[0]!.resolve('first')
  await until(() => download.isReleased)
  for (const part of download.parts) part.resolve('more')
  await until(() => download.isEnded)
  expect(log.lines).toEqual([])
})

test('downloads that fail for one reason leave two lines, the second with their number', async () => {
  using log = captureLog()
  const reason = `The disk is full ${crypto.randomUUID()}`
  const downloads = [await begin(), await begin(), await begin()]
  for (const { parts } of downloads) parts[1]!.reject(new Error(reason))
  const lines = () => log.lines.filter(line => line.includes(reason))
  await until(() => lines().length === 2)
  for (const { client } of downloads) await client.closed
  const counts = lines().map(line => JSON.parse(line).properties.count)
  expect([counts, downloads.every(({ isReleased }) => isReleased)]).toEqual([[1, 3], true])
})

test('a connection without requests outlives those of proxies', async () => {
  const started = spyOn(Bun, 'serve')
  const listener = serve({
    ...{ port: 0, host: '127.0.0.1', maxBodyBytes: 1, maxFrameBytes: 1, maxBufferedBytes: 1 },
    fetch: async () => new Response(),
    upgrade: async () => new Response(),
    open() {},
    message() {},
    close() {},
  })
  const { idleTimeout } = started.mock.lastCall?.[0] as { idleTimeout: number }
  started.mockRestore()
  await listener.stop()
  // The default of Caddy, the longest of the usual proxies.
  expect(idleTimeout).toBeGreaterThan(120)
})
