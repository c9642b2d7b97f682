import { expect, test } from 'bun:test'
import { connect } from '../../src/db/sql.ts'
import { describeHosts, isDatabaseUrl, parseUrl, withHost } from '../../src/database-url.ts'

const PAIR = 'postgres://u:p%40w@one.example,[::1]:5433/db?sslmode=require'

test('scale §1 a database URL can name several hosts, as with libpq', () => {
  const { hosts, address } = parseUrl(`${PAIR}&target_session_attrs=read-write`)
  expect(hosts).toEqual([
    { host: 'one.example', port: 5432 },
    { host: '::1', port: 5433 },
  ])
  expect(address).toBe('postgres://u:p%40w@one.example/db?sslmode=require')
  expect(describeHosts(PAIR)).toBe('one.example, [::1]:5433')
  expect(withHost(PAIR, hosts[1]!)).toBe('postgres://u:p%40w@[::1]:5433/db?sslmode=require')
})

test('scale §1 an IPv6 address reaches postgres.js as it is', () => {
  for (const [url, host, port] of [
    ['postgres://u:p@[::1]/d', '::1', 5432],
    ['postgres://u:p@[2001:db8::2]:5433/d?sslmode=require', '2001:db8::2', 5433],
    ['postgres://u:p@one.example:5434/d', 'one.example', 5434],
  ] as const) {
    const { options } = connect(url, { name: 'test', max: 1 })
    expect<unknown>([options.host, options.port]).toEqual([[host], [port]])
    expect(options).toMatchObject({ user: 'u', pass: 'p', database: 'd' })
  }
})

test('scale §1 parameters of libpq that Postgres does not know are left out', () => {
  const { address } = parseUrl('postgres://a/d?channel_binding=prefer&sslrootcert=system')
  expect(address).toBe('postgres://a/d?sslmode=verify-full')
  // postgres.js would fail at a server without TLS.
  expect(parseUrl('postgres://a,b/d?sslmode=allow').address).toBe('postgres://a/d?sslmode=prefer')
})

test.each([
  ['postgres://u@a/d', true],
  ['postgresql://u@a:1,b:2/d?target_session_attrs=primary', true],
  ['postgres://u@localhost/d?host=/run/postgresql', true],
  ['postgres://u@a,b:x/d', false],
  ['postgres://u@a,/d', false],
  ['mysql://u@a,b/d', false],
  // A server writes, so it cannot work with a standby.
  ['postgres://u@a,b/d?target_session_attrs=standby', false],
])('%s is a database URL: %p', (text, isOne) => {
  expect(isDatabaseUrl(text)).toBe(isOne)
})
