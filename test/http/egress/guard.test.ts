import { describe, expect, mock, spyOn, test } from 'bun:test'
import { networkInterfaces } from 'node:os'
import { createAddressGuard, parseEgressUrl } from '../../../src/http/egress/guard.ts'
import { toEgressError, toEgressMessage } from '../../../src/http/egress/failure.ts'
import { createOwnAddresses } from '../../../src/http/egress/guard.ts'
import { createResponseParser } from '../../../src/http/egress/response-parser.ts'

const guard = createAddressGuard([])
const problemOf = (url: string, isAllowed = guard) => {
  const target = parseEgressUrl(url, isAllowed)
  return 'problem' in target ? target.problem : undefined
}

// The union of the addresses that svix and hook0 refuse.
test.each([
  ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '10.254.0.0', '100.64.0.1', '100.100.0.0', '127.0.0.1'],
  ...['127.254.254.254', '169.254.1.1', '169.254.169.254', '172.16.5.4', '172.31.255.255'],
  ...['192.0.0.1', '192.0.2.255', '192.88.99.1', '192.168.1.1', '198.18.0.1', '198.51.100.65'],
  ...['203.0.113.6', '224.0.0.1', '239.255.255.250', '240.240.240.240', '255.255.255.255'],
  ...['::', '::1', '1::1', '0:0:0:1::1', 'ff:ffff::1', '::7f00:1', '::ffff:127.0.0.1'],
  ...['::ffff:169.254.169.254', '::ffff:0:7f00:1', '::5efe:7f00:1', '64:ff9b::7f00:1'],
  ...['64:ff9b::a9fe:a9fe', '64:ff9b::c0a8:0', '64:ff9b:1::1', '100::1', '2001::1'],
  ...['2001:1ff::1', '2001:db8::1', '2002:7f00:1::1', '2002:a9fe:a9fe::1', '2002:c000:204::1'],
  ...['3fff::1', '3fff:fff::1', '5f00::1', 'fc00::1', 'fd00:ec2::254', 'fd7a:115c:a1e0::1'],
  ...['fe80::1', 'febf:ffff::1', 'fec0::1', 'ff02::1', 'ff0e::1', 'fe80::1%eth0'],
  // Services of clouds, of which only Azure's has an address from the public ranges.
  ...['168.63.129.16', '::ffff:168.63.129.16', '64:ff9b::a83f:8110', '100.100.100.200'],
  ...['169.254.170.2', '169.254.0.23', '169.254.42.42', '192.0.0.192', 'fd20:ce::254'],
  ...['fd00:a9fe:a9fe::1', 'fe80::a9fe:a9fe'],
  // NAT64 addresses are refused with any IPv4 address inside: a gateway would turn them into IPv4.
  ...['64:ff9b::5db8:d822', '64:ff9b::808:808'],
  // Invalid spellings of addresses.
  ...['127.1', '0x7f000001', 'localhost', '', '1.2.3', '2606:4700::1%eth0'],
])('case 22: %s is refused', address => {
  expect(guard(address)).toBe(false)
})

test.each([
  ...['1.1.1.1', '8.8.8.8', '93.184.216.34', '100.63.255.255', '100.128.0.1', '172.15.0.1'],
  ...['172.32.0.1', '198.17.255.255', '198.20.0.0', '2001:200::1', '2001:4860:4860::8888'],
  ...['2606:4700:4700::1111', '::ffff:8.8.8.8', '168.63.129.15', '168.63.129.17'],
])('%s is public', address => {
  expect(guard(address)).toBe(true)
})

const OWN = ['8.8.4.4', '2606:4700::9', 'fe80::1%eth0', '::ffff:9.9.9.9']

test.each([
  ...['8.8.4.4', '::ffff:8.8.4.4', '::ffff:808:404', '2606:4700::9', '2606:4700:0:0::9', '9.9.9.9'],
  ...['64:ff9b::8.8.4.4', '64:ff9b::808:404', '64:ff9b:1::808:404', '2002:808:404::1'],
  ...['::8.8.4.4', '::ffff:0:808:404'],
])('an own public address is refused in every form: %s', address => {
  expect(
    createAddressGuard(
      [],
      createOwnAddresses(() => OWN),
    )(address),
  ).toBe(false)
})

test('EGRESS_ALLOW_CIDRS opens an own address, and a gateway opens only allowed IPv4 addresses', () => {
  const isOwn = createOwnAddresses(() => OWN)
  const open = createAddressGuard(['8.8.4.4/32', '2606:4700::/32'], isOwn)
  for (const address of ['8.8.4.4', '::ffff:8.8.4.4', '2606:4700::9']) {
    expect(open(address)).toBe(true)
  }
  const gateways = createAddressGuard(['64:ff9b::/96', '64:ff9b:1::/48', '2002::/16'], isOwn)
  for (const address of ['64:ff9b::1.1.1.1', '64:ff9b:1::1.1.1.1', '2002:101:101::1']) {
    expect([address, gateways(address)]).toEqual([address, true])
  }
  for (const address of ['8.8.4.4', '127.0.0.1', '10.0.0.1', '169.254.169.254']) {
    const [a = 0, b = 0, c = 0, d = 0] = address.split('.').map(Number)
    const sixToFour = `2002:${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}::1`
    for (const form of [`64:ff9b::${address}`, `64:ff9b:1::${address}`, sixToFour]) {
      expect([form, gateways(form)]).toEqual([form, false])
    }
  }
  const both = createAddressGuard(['64:ff9b::/96', '10.0.0.0/8'], isOwn)
  expect(both('64:ff9b::10.0.0.1')).toBe(true)
})

test('the addresses of this machine are those of its interfaces, read at most every 5 s', () => {
  const isOwn = createOwnAddresses()
  const all = Object.values(networkInterfaces()).flatMap(one => one ?? [])
  expect(all.length).toBeGreaterThan(0)
  for (const { address } of all) expect(isOwn(address)).toBe(true)
  expect(isOwn('8.8.8.8')).toBe(false)
  let reads = 0
  const counted = createOwnAddresses(() => [`8.8.8.${++reads}`])
  for (let time = 0; time < 100; time++) counted('1.1.1.1')
  expect([reads, counted('8.8.8.1')]).toEqual([1, true])
})

test('addresses that cannot be read refuse nothing else', () => {
  const isOwn = createOwnAddresses(() => {
    throw new Error('no netlink')
  })
  expect(createAddressGuard([], isOwn)('8.8.8.8')).toBe(true)
})

test('EGRESS_ALLOW_CIDRS opens its networks in every spelling of an address, and nothing else', () => {
  const open = createAddressGuard(['10.0.0.0/8', 'fd00::/8'])
  for (const address of ['10.1.2.3', '::ffff:10.1.2.3', 'fd12::1']) expect(open(address)).toBe(true)
  for (const address of ['127.0.0.1', '11.0.0.1.', '192.168.0.1', 'fe80::1', '::1']) {
    expect(open(address)).toBe(false)
  }
})

describe('case 22: as a URL', () => {
  test.each([
    ...['http://0x7f.1/', 'http://2130706433/', 'http://127.1/', 'http://017700000001/'],
    ...['http://0/', 'http://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460/', 'http://127.0.0.1./'],
    ...['http://[::ffff:127.0.0.1]/', 'http://[::ffff:7f00:1]/', 'http://[::]/'],
    ...['http://169.254.169.254/latest/meta-data/', 'http://%31%32%37.0.0.1/'],
    ...['http://[64:ff9b::a9fe:a9fe]/'],
  ])('%s is refused', url => {
    expect(problemOf(url)).toContain('public address')
  })

  test.each([
    ['file:///etc/passwd', 'https://'],
    ['data:text/plain,hi', 'https://'],
    ['s3://bucket/key', 'https://'],
    ['blob:null/1', 'https://'],
    ['gopher://example.com/', 'https://'],
    ['ftp://example.com/', 'https://'],
    ['javascript:alert(1)', 'https://'],
    ['https://u:p@example.com/', 'user name'],
    ['https://u@example.com/', 'user name'],
    ['https://:p@example.com/', 'user name'],
    ['https://example.com:25/', 'port 25'],
    ['http://example.com:22/', 'port 22'],
    ['http://example.com:6667/', 'port 6667'],
    ['http://example.com:0/', 'port 0'],
    ['https://example.com:10080/', 'port 10080'],
    ['example.com', 'must look like'],
    ['//example.com', 'must look like'],
    ['https://', 'must look like'],
    ['https://exa mple.com', 'must look like'],
    [`https://example.com/${'a'.repeat(2048)}`, '2048'],
    [
      `https://example.com/${'ü'.repeat(400)}`,
      'sent as 2420. A letter such as ü is sent as %C3%BC',
    ],
    [`https://example.com/?q=${'"'.repeat(700)}`, '2048'],
    [`https://${'ü'.repeat(100)}.example/`, 'too long'],
    [`https://${'a.'.repeat(130)}example/`, 'too long'],
  ])('%p is refused with a sentence', (url, part) => {
    expect(problemOf(url)).toContain(part)
  })

  test.each([
    'https://example.com/',
    'http://example.com:8080/a?b=c',
    'https://8.8.8.8/',
    'https://[2606:4700::1111]:8443/',
    'https://ünïcode.example/',
    `https://example.com/${'ü'.repeat(338)}`,
    `https://example.com/#${'ü'.repeat(900)}`,
    `https://${'a'.repeat(63)}.example/`,
  ])('%s passes', url => {
    expect(problemOf(url)).toBeUndefined()
  })
})

test.each([
  ['ECONNREFUSED', '', 'connect'],
  ['ECONNRESET', '', 'reset'],
  ['EPIPE', '', 'reset'],
  ['CERT_HAS_EXPIRED', '', 'tls'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', '', 'tls'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', '', 'tls'],
  ['', 'invalid peer certificate: UnknownIssuer', 'tls'],
  ['HPE_HEADER_OVERFLOW', '', 'protocol'],
  ['EGRESS_LOOKUP_FAILED', '', 'dns'],
  ['', 'socket hang up', 'reset'],
] as const)('a failure with the code %p %p is %p', (code, message, kind) => {
  expect(toEgressError(Object.assign(new Error(message), { code }))).toBe(kind)
})

test("no message quotes the runtime's error: its addresses would map the network", () => {
  const error = Object.assign(new Error('connect ECONNREFUSED 10.0.0.1:80'), {
    code: 'ECONNREFUSED',
  })
  expect(toEgressMessage(toEgressError(error))).not.toMatch(/\d/)
})

describe('a response is parsed', () => {
  /** Reads a response in parts of `size` bytes. */
  const parse = (text: string, size = text.length) => {
    const parser = createResponseParser(20)
    let state = 'head'
    const bytes = Buffer.from(text, 'latin1')
    for (let at = 0; at < bytes.length; at += size) {
      state = parser.push(bytes.subarray(at, at + size))
      if (state !== 'head' && state !== 'body') break
    }
    const { head, body, canReuse } = parser
    return { state, status: head?.status, headers: head?.headers, body: String(body), canReuse }
  }
  const OK = 'HTTP/1.1 200 OK\r\n'
  const CHUNKED = `${OK}Transfer-Encoding: chunked\r\n\r\n`

  test.each([
    ['a length', `${OK}Content-Length: 5\r\n\r\nwhole`, 'complete', 'whole', true],
    ['chunks', `${CHUNKED}3;a=b\r\nwho\r\n2\r\nle\r\n0\r\n\r\n`, 'complete', 'whole', true],
    ['trailers', `${CHUNKED}5\r\nwhole\r\n0\r\nX: y\r\n\r\n`, 'complete', 'whole', true],
    ['its end', `${OK}\r\nwhole`, 'body', 'whole', false],
    ['LF alone', 'HTTP/1.1 200 OK\nContent-Length: 5\n\nwhole', 'complete', 'whole', true],
    ['no body', 'HTTP/1.1 204 No Content\r\n\r\n', 'complete', '', true],
    ['an empty body', `${OK}Content-Length: 0\r\n\r\n`, 'complete', '', true],
    [
      'early hints',
      `HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${OK}Content-Length: 2\r\n\r\nok`,
      'complete',
      'ok',
      true,
    ],
    ['no reason', 'HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok', 'complete', 'ok', true],
    ['a close', `${OK}Connection: close\r\nContent-Length: 2\r\n\r\nok`, 'complete', 'ok', false],
    ['HTTP/1.0', 'HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok', 'complete', 'ok', false],
    [
      'both framings',
      `${OK}Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n`,
      'complete',
      'ok',
      false,
    ],
    [
      'a long body',
      `${OK}Content-Length: 90\r\n\r\n${'a'.repeat(50)}`,
      'full',
      'a'.repeat(20),
      false,
    ],
  ])('with %s, whole and byte by byte', (_, text, state, body, canReuse) => {
    for (const size of [text.length, 1]) {
      expect(parse(text, size)).toMatchObject({ state, body, canReuse })
    }
  })

  test.each([
    ['a folded field', `${OK}X-A: one\r\n\ttwo\r\n  three\r\n`, { 'x-a': 'one two three' }],
    ['a fold before the first field', `${OK} nothing\r\nX-A: one\r\n`, { 'x-a': 'one' }],
    ['a space before the colon', `${OK}X-A : one\r\n`, { 'x-a': 'one' }],
    ['a name with a space', `${OK}X A: one\r\nX-B: two\r\n`, { 'x-b': 'two' }],
    ['a line that is not a field', `${OK}nonsense\r\nX-A: one\r\n`, { 'x-a': 'one' }],
    ['a bare CR', `${OK}X-A: one\rtwo\r\r\n`, { 'x-a': 'one two' }],
    ['folds with LF alone', 'HTTP/1.1 200 OK\nX-A: one\n two\n', { 'x-a': 'one two' }],
  ])('with %s, and its connection is not used again', (_, head, headers) => {
    const length = 'Content-Length : 5\r\n\r\nwhole'
    for (const text of [`${head}${length}`, `${head}${length.replace(' :', ':')}`]) {
      for (const size of [text.length, 1]) {
        const parsed = parse(text, size)
        expect(parsed).toMatchObject({ state: 'complete', body: 'whole', canReuse: false })
        expect({ ...parsed.headers }).toEqual({ ...headers, 'content-length': '5' })
      }
    }
  })

  test.each([
    ['HTTP/1.1 200', 200],
    ['HTTP/1.1 200 ', 200],
    ['HTTP/1.1  204\tNo  Content', 204],
    ['HTTP/1.9 201 Caf\xe9 \x00', 201],
    ['\r\n\r\nHTTP/1.1 202 Accepted', 202],
    ['\nHTTP/1.1 500 Oh', 500],
  ])('with the status line %p', (line, status) => {
    for (const end of ['\r\n', '\n']) {
      const text = `${line}${end}Content-Length: 0${end}${end}`
      for (const size of [text.length, 1]) expect(parse(text, size).status).toBe(status)
    }
  })

  test('with equal lengths in a list', () => {
    const text = `${OK}Content-Length: 2, 2\r\nContent-Length: 2\r\n\r\nok`
    expect(parse(text)).toMatchObject({ state: 'complete', body: 'ok', canReuse: true })
  })

  test('and keeps no more than its body, however large the buffers that brought it', () => {
    const kept = ['length', 'chunks', 'close'].map(framing => {
      const parser = createResponseParser(16 * 1024)
      const field = {
        length: 'Content-Length: 8000',
        chunks: 'Transfer-Encoding: chunked',
        close: '',
      }[framing]
      parser.push(Buffer.from(`${OK}${field}\r\n\r\n`.replace('\r\n\r\n\r\n', '\r\n\r\n')))
      for (let n = 0; n < 800; n++) {
        const large = Buffer.alloc(64 * 1024, framing === 'chunks' ? '1\r\na\r\n' : 'a')
        parser.push(large.subarray(0, framing === 'chunks' ? 60 : 10))
      }
      return [parser.body.length, parser.body.buffer.byteLength <= 16 * 1024]
    })
    expect(kept).toEqual([
      [8_000, true],
      [8_000, true],
      [8_000, true],
    ])
  })

  test('and its bytes are copied a few times, in however many parts they arrive', () => {
    const made = [spyOn(Buffer, 'alloc'), spyOn(Buffer, 'concat'), spyOn(Buffer, 'from')]
    const parser = createResponseParser(16 * 1024)
    const head = new TextEncoder().encode(`${CHUNKED.trimEnd()}\r\nX: ${'x'.repeat(4_000)}\r\n\r\n`)
    const chunks = new TextEncoder().encode('1\r\na\r\n'.repeat(4_000))
    for (const byte of head) parser.push(Buffer.of(byte))
    parser.push(Buffer.copyBytesFrom(chunks))
    expect(parser.body).toHaveLength(4_000)
    const lengths = made.flatMap(spy =>
      spy.mock.results.map(({ value }) => (value as Buffer).length),
    )
    mock.restore()
    expect(lengths.reduce((sum, length) => sum + length)).toBeLessThan(100_000)
  })

  test('of repeated fields the first counts, whatever their names', () => {
    const text = `${OK}Retry-After:  5 \r\nretry-after: 7\r\n__proto__: x\r\nContent-Length: 0\r\n\r\n`
    const { headers } = parse(text)
    expect(headers?.['retry-after']).toBe('5')
    expect(Object.keys(headers ?? {})).toEqual(['retry-after', '__proto__', 'content-length'])
  })

  test('bytes after a response end the connection', () => {
    const text = `${OK}Content-Length: 2\r\n\r\nok${OK}`
    expect(parse(text)).toMatchObject({ state: 'complete', body: 'ok', canReuse: false })
  })

  test.each([
    ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n\r\n'],
    ['HTTP/2', 'HTTP/2 200\r\n\r\n'],
    ['an upgrade', 'HTTP/1.1 101 Switching Protocols\r\n\r\n'],
    ['a folded length', `${OK}Content-Length: 2\r\n 3\r\n\r\nok`],
    ['a length with a broken name', `${OK}Content Length\r\nX Content-Length: 2\r\n\r\nok`],
    ['two lengths in a list', `${OK}Content-Length: 2, 3\r\n\r\nok`],
    ['two lengths', `${OK}Content-Length: 2\r\nContent-Length: 3\r\n\r\nok`],
    ['a negative length', `${OK}Content-Length: -1\r\n\r\n`],
    ['a size that is not hexadecimal', `${CHUNKED}0x2\r\nok\r\n`],
    ['a chunk that is too long', `${CHUNKED}2\r\nokay\r\n0\r\n\r\n`],
    ['a huge size', `${CHUNKED}ffffffffffffffff\r\n`],
    ['a long head', `${OK}${'A: b\r\n'.repeat(4_000)}\r\n`],
    ['a head without an end', `${OK}A: ${'b'.repeat(20_000)}`],
    ['a line without an end', `${CHUNKED}1;${'b'.repeat(20_000)}`],
    ['endless trailers', `${CHUNKED}0\r\n${'A: b\r\n'.repeat(5_600)}`],
    ['endless extensions', `${CHUNKED}${`1;${'x'.repeat(8_000)}\r\na\r\n`.repeat(5)}`],
    ['long hints', `HTTP/1.1 103 Early Hints\r\nLink: ${'x'.repeat(9_000)}\r\n\r\n`.repeat(4)],
    ['endless line breaks', '\r\n'.repeat(20_000)],
    ['endless hints', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(11)],
  ])('%s is invalid', (_, text) => {
    for (const size of [text.length, 7]) expect(parse(text, size).state).toBe('invalid')
  })
})
