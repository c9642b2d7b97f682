import { expect, test } from 'bun:test'
import { connect } from '../../src/database/sql.ts'
import {
  describeHosts,
  findUrlProblem,
  MAX_SOCKET_PATH_BYTES,
  parseUrl,
  withHost,
} from '../../src/base/database-url.ts'

const PAIR = 'postgres://u:p%40w@one.example,[::1]:5433/db?sslmode=require'
const FILES: Record<string, string> = { '/ca.pem': '-----BEGIN CERTIFICATE-----', '/ca.der': '0' }

const findProblem = (url: string) => findUrlProblem(url, path => FILES[path])
const withParameters = (more: string) => parseUrl(`postgres://u:p@db.example/d?${more}`)

test('scale §1 a database URL can name several hosts, as with libpq', () => {
  const { hosts } = parseUrl(`${PAIR}&target_session_attrs=read-write`)
  expect(hosts).toEqual([
    { host: 'one.example', port: 5432 },
    { host: '::1', port: 5433 },
  ])
  expect(describeHosts(PAIR)).toBe('one.example, [::1]:5433')
  expect(withHost(PAIR, hosts[1]!)).toBe('postgres://u:p%40w@[::1]:5433/db?sslmode=require')
  expect(parseUrl('postgres:///d?host=a.example,::1&port=1,2').hosts).toEqual([
    { host: 'a.example', port: 1 },
    { host: '::1', port: 2 },
  ])
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

// As the consoles and documents of providers print them.
test.each([
  [
    'Neon',
    'postgresql://alex:AbC123dEf@ep-cool-darkness-a1b2c3d4.us-east-2.aws.neon.tech/dbname?sslmode=require&channel_binding=require',
    { database: 'dbname', tls: { mode: 'require', isBound: true } },
  ],
  [
    'Neon for a client without SNI',
    'postgresql://alex:p@ep.neon.tech/dbname?options=endpoint%3Dep-cool-darkness-123456&sslmode=require',
    { options: 'endpoint=ep-cool-darkness-123456', searchPath: undefined },
  ],
  [
    'Supabase',
    'postgresql://postgres:p@db.abcdefghij.supabase.co:5432/postgres',
    { user: 'postgres', tls: { mode: 'prefer' }, isPooled: false },
  ],
  [
    'the pooler of Supabase, for Prisma',
    'postgres://postgres.abcdefghij:p@aws-0-eu-central-1.pooler.supabase.com:6543/postgres?pgbouncer=true&connection_limit=1',
    { user: 'postgres.abcdefghij', isPooled: true, hosts: [{ port: 6543 }] },
  ],
  [
    'Supabase on Vercel',
    'postgres://postgres.abc:p@aws-0-us-east-1.pooler.supabase.com:5432/postgres?sslmode=require&supa=base-pooler.x',
    { tls: { mode: 'require' } },
  ],
  [
    'RDS',
    'postgresql://tidings:p@db.abc.eu-central-1.rds.amazonaws.com:5432/tidings?sslmode=verify-full&sslrootcert=/ca.pem',
    { tls: { mode: 'verify-full', roots: '/ca.pem' } },
  ],
  [
    'Azure',
    'postgresql://tidings%40server:p@server.postgres.database.azure.com:5432/postgres?sslmode=require',
    { user: 'tidings@server', tls: { mode: 'require' } },
  ],
  [
    'Heroku',
    'postgres://ubcdef:p0123@ec2-1-2-3-4.compute-1.amazonaws.com:5432/d8abc',
    { tls: { mode: 'prefer' } },
  ],
  ['Heroku for Node', 'postgres://u:p@h.example/d?sslmode=no-verify', { tls: { mode: 'require' } }],
  [
    'Fly',
    'postgres://postgres:p@my-db.flycast:5432/my_db?sslmode=disable',
    { tls: { mode: 'disable' } },
  ],
  [
    'Prisma',
    'postgresql://u:p@localhost:5432/mydb?schema=public&connect_timeout=5',
    { searchPath: '"public"', connectS: 5, tls: { mode: 'disable' } },
  ],
  [
    'Cloud SQL',
    'postgresql://u:p@/d?host=/cloudsql/project:europe-west1:instance',
    { path: '/cloudsql/project:europe-west1:instance/.s.PGSQL.5432', database: 'd' },
  ],
  [
    'an encoded socket folder',
    'postgres://u@%2Frun%2Fpostgresql:5433/d',
    { path: '/run/postgresql/.s.PGSQL.5433', tls: { mode: 'disable' } },
  ],
])('a URL of %s is read', (_, url, parts) => {
  expect(findProblem(url)).toBeUndefined()
  expect(parseUrl(url)).toMatchObject(parts)
})

test('parameters of TLS mean what they mean to libpq', () => {
  const toMode = (more: string) => withParameters(more).tls.mode
  for (const mode of ['disable', 'prefer', 'require', 'verify-ca', 'verify-full'] as const)
    expect(toMode(`sslmode=${mode}`)).toBe(mode)
  expect(toMode('sslmode=allow')).toBe('prefer')
  expect(toMode('')).toBe('prefer')
  expect(toMode('sslmode=require&sslrootcert=/ca.pem')).toBe('verify-ca')
  expect(toMode('sslmode=require&sslrootcert=system')).toBe('verify-full')
  expect(toMode('ssl=true')).toBe('require')
  // A plain connection has nothing to bind to.
  expect(toMode('channel_binding=require')).toBe('require')
  expect(toMode('sslmode=prefer&channel_binding=require')).toBe('require')
  expect(toMode('channel_binding=require&ssl=')).toBe('require')
  expect(parseUrl('postgres://127.0.0.1/d?channel_binding=require').tls.mode).toBe('require')
  // TLS is off only if all hosts are on this machine.
  expect(parseUrl('postgres://localhost,127.0.0.1/d').tls.mode).toBe('disable')
  expect(parseUrl('postgres://localhost,other.example/d').tls.mode).toBe('prefer')
  const atSocket = 'postgres://u@localhost/d?host=/run/postgresql&channel_binding=require'
  expect(findProblem(atSocket)).toContain('a socket file has none')
})

test('a schema and settings are split from the other options', () => {
  const read = (options: string) => {
    const { searchPath, options: rest } = withParameters(`options=${encodeURIComponent(options)}`)
    return [searchPath, rest]
  }
  expect(read('-c search_path=app,public')).toEqual(['app,public', undefined])
  expect(read('-csearch_path=a\\ b -c work_mem=8MB')).toEqual(['a b', '-c work_mem=8MB'])
  expect(read('-c work_mem=8MB --search-path=a')).toEqual(['a', '-c work_mem=8MB'])
  expect(read('-c work_mem=8MB')).toEqual([undefined, '-c work_mem=8MB'])
  expect(withParameters('options=-c+search_path=a').searchPath).toBe('a')
  expect(withParameters('schema=My"App').searchPath).toBe('"My""App"')
})

test.each([
  ['postgres://u@a/d', undefined],
  ['postgresql://u@a:1,b:2/d?target_session_attrs=primary', undefined],
  ['postgres://u@localhost/d?host=/run/postgresql', undefined],
  ['postgres://u:a#b?c@h/d', undefined],
  ['postgres://h/d?application_name=x&gssencmode=disable&keepalives=1', undefined],
  ['postgres://u@a,b:x/d', 'Its host or port is not valid'],
  ['postgres://u@a,/d', 'Its host or port is not valid'],
  ['postgres://u@2001:db8::2/d', 'Write an IPv6 address in brackets: [::1]:5432.'],
  ['postgres://u:50%off@h/d', 'Write the % of a password as %25.'],
  ['postgres://u:p@w@h/d', 'Write @ as %40'],
  // A server writes, so it cannot work with a standby.
  ['postgres://u@a,b/d?target_session_attrs=standby', 'because a server writes.'],
  ['postgres://h/d?sslmod=require', 'has the unknown parameter sslmod. Did you mean sslmode?'],
  ['postgres://h/d?datestyle=ISO', 'Write a setting of Postgres as options=-c%20name=value.'],
  ['postgres://h/d?s%20ecret', 'has a parameter without a valid name'],
  ['postgres://h/d?sslmode=on', 'needs another value of sslmode: one of disable, allow, prefer'],
  ['postgres://h/d?sslmode=disable&channel_binding=require', 'needs TLS. Use sslmode=require.'],
  ['postgres://h/d?gssencmode=require', 'gssencmode=require, which is not supported'],
  ['postgres://h/d?service=main', 'has service, which is not supported.'],
  ['postgres://h/d?sslmode=verify-ca&sslrootcert=/none', 'cannot be read: /none.'],
  ['postgres://h/d?sslmode=verify-ca&sslrootcert=/ca.der', 'is not PEM: /ca.der. Convert it.'],
])('%s has the problem %p', (url, problem) => {
  if (problem === undefined) expect(findProblem(url)).toBeUndefined()
  else expect(findProblem(url)).toContain(problem)
})

test('the path of a socket has its limit in bytes', () => {
  const longest = '/ü'.padEnd(MAX_SOCKET_PATH_BYTES - '/.s.PGSQL.5432'.length - 1, 'x')
  expect(findProblem(`postgres://u@/d?host=${longest}`)).toBeUndefined()
  for (const url of [
    `postgres://u@/d?host=${longest}x`,
    `postgres://u@/d?host=${longest}&port=15432`,
    `postgres://u@${encodeURIComponent(`${longest}x`)}/d`,
  ])
    expect(findProblem(url)).toContain(`is too long for a socket: ${MAX_SOCKET_PATH_BYTES} bytes`)
})
