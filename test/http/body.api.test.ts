import { describe, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import { RATE_HEADERS, expectFailure, expectIssues, listRateHeaders } from '../support/answers.ts'
import { openRaw, sendRaw, toRequest } from '../support/clients/raw-http.ts'
import { withServer } from '../support/servers/server.ts'
import { newProject } from '../support/worlds/project.ts'

const BODY_TIMEOUT_MS = 400
const LIMIT = 256 * 1024
const MIB = 1024 * 1024

const server = withServer({}, { bodyTimeoutMs: BODY_TIMEOUT_MS })

const event = JSON.stringify({ channelName: 'payments', title: 'New payment' })

/** Returns the request line and headers of `POST /v1/events`. */
function toHead(key: string, ...headers: string[]): string {
  return toRequest('POST /v1/events HTTP/1.1', [
    'Host: localhost',
    `Authorization: Bearer ${key}`,
    'Content-Type: application/json',
    ...headers,
  ])
}

/** Returns an event as JSON of exactly `bytes` bytes, padded with an ignored property. */
function toEvent(bytes: number): string {
  const empty = JSON.stringify({ channelName: 'payments', title: 'x', filler: '' })
  return empty.replace('""', `"${'x'.repeat(bytes - empty.length)}"`)
}

function toChunks(body: string, size: number): string {
  let chunks = ''
  for (let start = 0; start < body.length; start += size) {
    const chunk = body.slice(start, start + size)
    chunks += `${chunk.length.toString(16)}\r\n${chunk}\r\n`
  }
  return `${chunks}0\r\n\r\n`
}

describe('case 8: the Content-Type decides how a body is read:', () => {
  const send = async (type: string) =>
    (await newProject(server)).request('/v1/events', {
      method: 'POST',
      body: event,
      headers: { 'content-type': type },
    })

  test('JSON in UTF-8 is read, and other types are refused', async () => {
    for (const type of [
      ...['application/json', 'Application/JSON; Charset=UTF-8', 'application/json ; profile=x'],
      'application/json; charset="utf-8"',
    ]) {
      expect([type, (await send(type)).status]).toEqual([type, 201])
    }
    for (const type of [
      ...['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'],
      ...['application/vnd.api+json', 'application/jsonp', 'application/json, text/plain', '*/*'],
      ...['application/json; charset=iso-8859-1', 'application/json; charset=utf-16'],
    ]) {
      const answer = await send(type)
      expectFailure(answer, 415, 'unsupported_media_type')
      expect(listRateHeaders(answer)).toEqual(RATE_HEADERS)
    }
  })

  test('a body without a Content-Type is read as JSON', async () => {
    const { key } = await newProject(server)
    const head = toHead(key, `Content-Length: ${event.length}`)
    for (const type of ['', 'Content-Type:\r\n']) {
      const answer = await sendRaw(
        server.url,
        head.replace('Content-Type: application/json\r\n', type) + event,
      )
      expect(answer?.status).toBe(201)
    }
  })

  test('every Content-Encoding but identity is refused', async () => {
    const { request } = await newProject(server)
    const send = (encoding: string, body: string | Uint8Array<ArrayBuffer>) =>
      request('/v1/events', {
        method: 'POST',
        body,
        headers: { 'content-type': 'application/json', 'content-encoding': encoding },
      })
    const zipped = new Uint8Array(gzipSync(event))
    for (const [encoding, body] of [
      ['gzip', zipped],
      ['br', event],
      ['identity, gzip', zipped],
    ] as const) {
      expectFailure(await send(encoding, body), 415, 'unsupported_media_type')
    }
    expect((await send('Identity', event)).status).toBe(201)
  })

  test('a text route accepts text/plain and the form type of curl -d, and no JSON', async () => {
    const { request, key } = await newProject(server)
    const send = (type: string) =>
      request('/v1/channels/ops', { method: 'POST', body: 'Up', headers: { 'content-type': type } })
    for (const type of [
      'text/plain',
      'text/plain; charset=UTF-8',
      'application/x-www-form-urlencoded',
    ])
      expect([type, (await send(type)).status]).toEqual([type, 201])
    // Some runtimes send no Content-Type for a string body.
    const head = `POST /v1/channels/ops HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${key}\r\n`
    const untold = await sendRaw(server.url, `${head}Content-Length: 2\r\n\r\nUp`)
    expect(untold?.status).toBe(201)
    expectFailure(await send('application/json'), 415, 'unsupported_media_type')
    expectFailure(await send('text/plain; charset=latin1'), 415, 'unsupported_media_type')
  })
})

describe('case 9: a body has at most 256 KiB:', () => {
  test('with a Content-Length, and in chunks without a length', async () => {
    const { key } = await newProject(server)
    for (const [bytes, status] of [
      [LIMIT - 1, 201],
      [LIMIT, 201],
      [LIMIT + 1, 413],
      [9 * MIB, 413],
    ] as const) {
      const body = toEvent(bytes)
      const sized = toHead(key, `Content-Length: ${bytes}`) + body
      const chunked = toHead(key, 'Transfer-Encoding: chunked') + toChunks(body, 10_000)
      for (const request of [sized, chunked]) {
        const answer = await sendRaw(server.url, request)
        expect([bytes, answer?.status]).toEqual([bytes, status])
        if (status === 413) expectFailure(answer, 413, 'payload_too_large')
      }
    }
  })

  test('without credentials 32 KiB', async () => {
    const send = async (bytes: number) => {
      const body = { email: 'nobody@example.com', password: 'wrong', filler: 'x'.repeat(bytes) }
      const headers = { 'content-type': 'application/json', origin: server.url }
      const options = { method: 'POST', headers, body: JSON.stringify(body) }
      return (await fetch(`${server.url}/api/session`, options)).status
    }
    expect([await send(31 * 1024), await send(32 * 1024)]).toEqual([401, 413])
  })

  test('a chunked body over the limit is answered before its end', async () => {
    const { key } = await newProject(server)
    using connection = openRaw(server.url)
    connection.write(toHead(key, 'Transfer-Encoding: chunked'))
    connection.write(`${(LIMIT + 1).toString(16)}\r\n${'x'.repeat(LIMIT + 1)}\r\n`)
    expectFailure(await connection.answer(), 413, 'payload_too_large')
  })

  test('a body that is refused unread uses no memory', async () => {
    const { key } = await newProject(server)
    const block = new Uint8Array(MIB)
    using connections = new DisposableStack()
    const before = process.memoryUsage.rss()
    const answers = Array.from({ length: 4 }, async () => {
      const connection = connections.use(openRaw(server.url))
      connection.write(toHead(key, `Content-Length: ${100 * MIB}`))
      const answer = await connection.answer()
      // Repeats one block: memory grows only if the server keeps the bytes.
      for (let sent = 0; sent < 100; sent++) await connection.flush(block)
      return answer
    })
    for (const answer of await Promise.all(answers)) {
      expectFailure(answer, 413, 'payload_too_large')
    }
    expect(process.memoryUsage.rss() - before).toBeLessThan(100 * MIB)
  })

  test('the server survives a body over the limit of the platform', async () => {
    const { key, get } = await newProject(server)
    const answer = await sendRaw(server.url, toHead(key, `Content-Length: ${2 ** 50}`))
    expect(answer?.status).toBe(413)
    expect((await get('/v1/me')).status).toBe(200)
  })
})

describe('case 9: a body that does not match its headers:', () => {
  test('a body that stops short is answered 408, and the connection closes', async () => {
    const { key, get } = await newProject(server)
    using connection = openRaw(server.url)
    connection.write(toHead(key, `Content-Length: ${event.length + 1}`) + event)
    const answer = await connection.answer()
    expectFailure(answer, 408, 'request_timeout')
    expect(listRateHeaders(answer!)).toEqual(RATE_HEADERS)
    expect(answer?.headers.get('connection')).toBe('close')
    await connection.closed
    expect((await get('/v1/events')).body.data.items).toEqual([])
  })

  for (const length of [`Content-Length: ${event.length}`, 'Transfer-Encoding: chunked']) {
    test(`a body that trickles in is answered 408 (${length})`, async () => {
      const { key, get } = await newProject(server)
      using connection = openRaw(server.url)
      connection.write(toHead(key, length))
      let sent = 0
      const drip = setInterval(() => {
        const byte = event[sent++ % event.length] ?? ''
        connection.write(length.startsWith('C') ? byte : `1\r\n${byte}\r\n`)
      }, BODY_TIMEOUT_MS / 5)
      const answer = await connection.answer()
      clearInterval(drip)
      expectFailure(answer, 408, 'request_timeout')
      await connection.closed
      expect((await get('/v1/events')).body.data.items).toEqual([])
    })
  }

  test('contradicting lengths are refused', async () => {
    const { key, get } = await newProject(server)
    for (const lengths of [
      ['Content-Length: 5', 'Content-Length: 6'],
      [`Content-Length: ${event.length}`, `content-length: ${event.length}`],
      ['Transfer-Encoding: chunked', `Content-Length: ${event.length}`],
      [`Content-Length: ${event.length}`, 'Transfer-Encoding: chunked'],
      ['Content-Length: -1'],
      ['Content-Length: +5'],
      ['Content-Length: 0x10'],
      ['Content-Length: 5, 5'],
    ]) {
      const answer = await sendRaw(server.url, toHead(key, ...lengths) + event)
      if (answer) expect([lengths, answer.status]).toEqual([lengths, 400])
    }
    expect((await get('/v1/events')).body.data.items).toEqual([])
  })

  test('a repeated length is refused before the body arrives, with and without credentials', async () => {
    const { key } = await newProject(server)
    const lengths = [`Content-Length: ${MIB}`, `Content-Length: ${MIB}`]
    const signIn = toRequest('POST /api/session HTTP/1.1', [
      `Host: ${new URL(server.url).host}`,
      `Origin: ${server.url}`,
      'Content-Type: application/json',
      ...lengths,
    ])
    for (const head of [toHead(key, ...lengths), signIn]) {
      expectIssues(await sendRaw(server.url, head), 'Content-Length invalid_format')
    }
    expect((await sendRaw(server.url, toHead('unknown', ...lengths)))?.status).toBe(401)
  })

  test('a connection serves the next request after a body that was refused unread', async () => {
    const { key } = await newProject(server)
    using connection = openRaw(server.url)
    const text = 'x'.repeat(LIMIT + 1)
    connection.write(toHead(key, `Content-Length: ${text.length}`) + text)
    expect((await connection.answer())?.status).toBe(413)
    connection.write(toHead(key, `Content-Length: ${event.length}`) + event)
    expect((await connection.answer())?.status).toBe(201)
  })
})

test('§7 an empty body is a 400 with an issue for the whole body', async () => {
  const { key } = await newProject(server)
  for (const head of [
    toHead(key, 'Content-Length: 0'),
    toHead(key),
    toHead(key, 'Transfer-Encoding: chunked') + toChunks('', 1),
  ]) {
    expectIssues(await sendRaw(server.url, head), ' invalid_json')
  }
})
