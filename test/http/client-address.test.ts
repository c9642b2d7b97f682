import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { createClientAddressReader } from '../../src/http/client-address.ts'
import { suggestTrustedProxies } from '../../src/server/bound-port.ts'

const networks = ['10.0.0.0/8', '2001:db8::/32', '127.0.0.1/32']

test.each([
  // peer, X-Forwarded-For, trusted proxies -> client address
  ['203.0.113.1', null, [], '203.0.113.1'],
  ['10.0.0.1', '192.0.2.1', networks, '192.0.2.1'],
  ['10.0.0.1', null, networks, '10.0.0.1'],
  ['10.0.0.1', '1.1.1.1, 192.0.2.1', networks, '192.0.2.1'],
  ['10.0.0.1', '1.1.1.1, 192.0.2.1, 10.0.0.2', networks, '192.0.2.1'],
  ['10.0.0.1', '10.0.0.3, 10.0.0.2', networks, '10.0.0.3'],
  ['10.0.0.1', 'unknown, 192.0.2.1', networks, '192.0.2.1'],
  ['::ffff:10.0.0.1', '192.0.2.1', networks, '192.0.2.1'],
  ['2001:db8::1', '2001:db9::1', networks, '2001:db9::1'],
  ['127.0.0.1', '::ffff:192.0.2.1', networks, '192.0.2.1'],
  ['', '192.0.2.1', networks, ''],
  // Ports, brackets and zones.
  ['10.0.0.1', '192.0.2.1:5678', networks, '192.0.2.1'],
  ['10.0.0.1', '1.1.1.1, 192.0.2.1:5678, 10.0.0.2:80', networks, '192.0.2.1'],
  ['10.0.0.1', '[2001:db9::1]:443', networks, '2001:db9::1'],
  ['10.0.0.1', '1.1.1.1, [2001:db8::1]:443', networks, '1.1.1.1'],
  ['10.0.0.1', '[::ffff:192.0.2.1]:1', networks, '192.0.2.1'],
  ['10.0.0.1', 'fe80::1%eth0', networks, 'fe80::1'],
  ['10.0.0.1', '[fe80::1%eth0]:443', networks, 'fe80::1'],
  ['2001:db8::1%eth0', '192.0.2.1', networks, '192.0.2.1'],
  ['10.0.0.1', '2001:DB9:0:0::1', networks, '2001:db9::1'],
  // A hop that cannot be read ends the way.
  ['10.0.0.1', 'unknown', networks, '10.0.0.1'],
  ['10.0.0.1', '1.1.1.1, unknown, 10.0.0.2', networks, '10.0.0.2'],
  ['10.0.0.1', '1.1.1.1,, ', networks, '10.0.0.1'],
  ['10.0.0.1', '1.1.1.1, 192.0.2.1:', networks, '10.0.0.1'],
  ['10.0.0.1', '1.1.1.1, [192.0.2.1]:80', networks, '10.0.0.1'],
  ['10.0.0.1', '1.1.1.1, [2001:db9::1', networks, '10.0.0.1'],
  ['10.0.0.1', '1.1.1.1, 2001:db9::1]:443', networks, '10.0.0.1'],
  ['10.0.0.1', '1.1.1.1, 0x7f.1', networks, '10.0.0.1'],
  ['10.0.0.1', '1.1.1.1, 127.1', networks, '10.0.0.1'],
  ['10.0.0.1', '1.1.1.1, 010.0.0.1', networks, '10.0.0.1'],
] as const)(
  'a client behind %p that sends X-Forwarded-For %p, with %p trusted, is %p',
  (peer, forwarded, trusted, client) => {
    expect(createClientAddressReader({ trusted })(peer, forwarded)).toBe(client)
  },
)

const read = createClientAddressReader({ trusted: networks })
const PROXIES = fc.array(fc.constantFrom('10.1.2.3', '2001:db8::9'), { maxLength: 3 })
const CLIENT = fc.oneof(
  fc.ipV4().filter(address => !/^(10|127)\./.test(address)),
  fc.constantFrom('2001:db9::1', '2a00::1:2', 'fd00::1'),
)
/** Writes an address as proxies do: with or without brackets, port and spaces. */
const toHop = (address: string, [bracket, port, spaces]: [boolean, number | undefined, string]) => {
  const host = address.includes(':') && (bracket || port !== undefined) ? `[${address}]` : address
  return `${spaces}${host}${port === undefined ? '' : `:${port}`}${spaces}`
}
const SPELLING = fc.tuple(
  fc.boolean(),
  fc.option(fc.integer({ min: 0, max: 65_535 }), { nil: undefined }),
  fc.constantFrom('', ' ', '\t'),
)

test('nothing that a client sends before the hops of the proxies changes its address', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.array(fc.oneof(CLIENT, fc.string())).map(all => all.join()),
      ),
      fc.tuple(CLIENT, SPELLING),
      fc.array(fc.tuple(fc.constantFrom('10.1.2.3', '2001:db8::9'), SPELLING), { maxLength: 3 }),
      (forged, client, proxies) => {
        const hops = [client, ...proxies].map(([address, spelling]) => toHop(address, spelling))
        const expected = read('10.0.0.1', [client[0], ...proxies.map(([one]) => one)].join())
        expect(read('10.0.0.1', [forged, ...hops].join())).toBe(expected)
        expect(read('10.0.0.1', hops.join(', '))).toBe(client[0])
      },
    ),
  )
})

test('a hop that cannot be read hides everything before it', () => {
  fc.assert(
    fc.property(
      fc.array(CLIENT),
      fc.string().filter(text => !/^\s*\[?[\da-f.:]*\]?/i.exec(text)?.[0].trim()),
      PROXIES,
      (forged, garbage, proxies) => {
        const last = garbage.replaceAll(',', ' ')
        const hops = [...forged, last, ...proxies].join()
        expect(read('10.0.0.1', hops)).toBe(proxies[0] ?? '10.0.0.1')
      },
    ),
  )
})

test('at most 32 hops are read', () => {
  const proxies = (length: number) => Array<string>(length).fill('10.1.2.3').join()
  expect(read('10.0.0.1', `192.0.2.1,${proxies(31)}`)).toBe('192.0.2.1')
  expect(read('10.0.0.1', `192.0.2.1,${proxies(32)}`)).toBe('10.1.2.3')
})

test('any header from an untrusted peer is ignored', () => {
  fc.assert(
    fc.property(fc.string(), header => {
      const peers: string[] = []
      const reader = createClientAddressReader({
        trusted: networks,
        onUntrusted: peer => peers.push(peer),
      })
      expect(reader('192.0.2.1', header)).toBe('192.0.2.1')
      expect(peers).toEqual(['192.0.2.1'])
    }),
  )
})

test.each([
  // trusted proxies, peer -> suggested setting
  [[], '127.0.0.1', '127.0.0.1'],
  [[], '::ffff:172.18.0.1', '172.18.0.1'],
  [[], '203.0.113.1', '203.0.113.1'],
  [['10.0.0.0/8'], '172.18.0.1', '10.0.0.0/8,172.18.0.1'],
  [['10.0.0.0/8'], 'fd00::1', '10.0.0.0/8,fd00::1'],
  [['10.0.0.0/8'], '8.8.8.8', undefined],
  [[], '', undefined],
] as const)('with %p trusted, X-Forwarded-For from %p suggests %p', (trusted, peer, setting) => {
  expect(suggestTrustedProxies(trusted, peer)).toBe(setting)
})
