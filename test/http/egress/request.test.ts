import { expect, test } from 'bun:test'
import { VERSION } from '../../../src/base/version.ts'
import { createEgress } from '../../../src/http/egress/egress.ts'
import { toRequestBytes, type RequestParts } from '../../../src/http/egress/request.ts'

const OWN = `User-Agent: Tidings/${VERSION}\r\nAccept-Encoding: identity\r\n`
const format = (url: string, parts: RequestParts) => String(toRequestBytes(new URL(url), parts))

test('RFC 9112 §2: a request is its line, its headers and exactly its body', () => {
  expect(format('https://a.test/x?y=%20z', { headers: { TTL: '60' }, body: 'é' })).toBe(
    `POST /x?y=%20z HTTP/1.1\r\nHost: a.test\r\n${OWN}TTL: 60\r\nContent-Length: 2\r\n\r\né`,
  )
  expect(format('https://a.test', { body: new Uint8Array([104, 105]) })).toBe(
    `POST / HTTP/1.1\r\nHost: a.test\r\n${OWN}Content-Length: 2\r\n\r\nhi`,
  )
})

test('RFC 9110 §8.6: Content-Length is absent from a GET request without a body', () => {
  expect(format('https://a.test/', { method: 'GET' })).toBe(
    `GET / HTTP/1.1\r\nHost: a.test\r\n${OWN}\r\n`,
  )
  expect(format('https://a.test/', {})).toContain('\r\nContent-Length: 0\r\n\r\n')
})

test.each([
  ['https://a.test:443/', 'a.test'],
  ['http://a.test:80/', 'a.test'],
  ['https://a.test:8443/', 'a.test:8443'],
  ['http://a.test:443/', 'a.test:443'],
  ['https://[2606:4700::1]/', '[2606:4700::1]'],
  ['https://[2606:4700::1]:8443/', '[2606:4700::1]:8443'],
  ['https://bücher.test/', 'xn--bcher-kva.test'],
])('RFC 9110 §7.2: the Host of %s is %s', (url, host) => {
  expect(format(url, {}).split('\r\n')[1]).toBe(`Host: ${host}`)
})

test.each([
  ...['Host', 'host', 'Content-Length', 'content-length', 'Transfer-Encoding', 'TE', 'Trailer'],
  ...['Connection', 'Keep-Alive', 'Proxy-Connection', 'Upgrade', 'Expect', 'User-Agent'],
  ...['Accept-Encoding'],
])('a caller cannot set the header %s', async name => {
  const headers = { [name]: '2' }
  expect(() => format('https://a.test/', { headers })).toThrow(
    new TypeError(`The client itself sets the header ${name}`),
  )
  const egress = createEgress()
  const sent = egress.send({ url: 'https://a.test/', headers, timeoutMs: 1 })
  await expect(sent).rejects.toThrow(TypeError)
})

test('a caller cannot repeat a header, or write another line into one', () => {
  const rejects = (headers: Record<string, string>) =>
    expect(() => format('https://a.test/', { headers })).toThrow(TypeError)
  rejects({ TTL: '1', ttl: '2' })
  rejects({ a: 'b\r\nHost: c' })
  rejects({ 'a\r\nHost': 'c' })
  rejects({ 'a b': 'c' })
  rejects({ 'a:': 'c' })
  rejects({ '': 'c' })
})
