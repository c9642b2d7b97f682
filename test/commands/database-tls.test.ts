import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { explainDatabaseError } from '../../src/database/explanation.ts'
import { SERVER_ROLE } from '../../src/database/embedded/cluster.ts'
import { waitUntilReachable } from '../../src/database/reachable.ts'
import { createAuthority } from '../support/certificates.ts'
import {
  hasDebianPostgres,
  startDebianPostgres,
  type DebianPostgres,
} from '../support/servers/debian-postgres.ts'
import { runProgram } from '../support/servers/process.ts'
import { makeFolder } from '../support/scratch.ts'
import { until } from '../support/until.ts'
import { openSql } from '../support/sql.ts'

describe.skipIf(!hasDebianPostgres())('a Postgres that requires TLS', () => {
  const folder = makeFolder()
  const save = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 })
    return join(folder, name)
  }
  const authority = createAuthority()
  const clients = createAuthority()
  const ca = save('ca.pem', authority.ca)
  const other = save('other.pem', createAuthority().ca)
  let postgres: DebianPostgres
  let url: string

  beforeAll(async () => {
    postgres = await startDebianPostgres({
      tls: { certificate: authority.issue(['localhost']), clientCa: clients.ca },
    })
    url = await postgres.createDatabase()
    await until(async () => (await tryOut('sslmode=require')) === 'encrypted')
  })
  afterAll(() => postgres[Symbol.asyncDispose]())

  /** Returns whether a session is encrypted, or why there is none. */
  async function tryOut(more: string, host = 'localhost', base = url): Promise<string> {
    const sql = openSql(`${base.replace('127.0.0.1', host)}?${more}`)
    try {
      const [row] = await sql<[{ ssl: boolean }]>`
        select ssl from pg_stat_ssl where pid = pg_backend_pid()
      `
      return row.ssl ? 'encrypted' : 'plain'
    } catch (error) {
      return explainDatabaseError(error) ?? String(error)
    } finally {
      await sql.end({ timeout: 1 })
    }
  }

  test.each([
    ['sslmode=require', 'localhost', 'encrypted'],
    ['sslmode=prefer', 'localhost', 'encrypted'],
    ['sslmode=allow', 'localhost', 'encrypted'],
    ['sslmode=disable', 'localhost', 'The database requires TLS'],
    [`sslmode=require&sslrootcert=${ca}`, 'localhost', 'encrypted'],
    [`sslmode=require&sslrootcert=${other}`, 'localhost', 'is not trusted'],
    [`sslmode=verify-ca&sslrootcert=${ca}`, 'localhost', 'encrypted'],
    [`sslmode=verify-ca&sslrootcert=${ca}`, '127.0.0.1', 'encrypted'],
    [`sslmode=verify-ca&sslrootcert=${other}`, 'localhost', 'sslrootcert=/path/ca.pem'],
    [`sslmode=verify-full&sslrootcert=${ca}`, 'localhost', 'encrypted'],
    [`sslmode=verify-full&sslrootcert=${ca}`, '127.0.0.1', 'is for another host'],
    [`sslmode=verify-full&sslrootcert=${other}`, 'localhost', 'is not trusted'],
    ['sslmode=verify-full', 'localhost', 'is not trusted'],
    ['sslmode=verify-full&sslrootcert=system', 'localhost', 'is not trusted'],
    ['sslmode=require&channel_binding=require', 'localhost', 'encrypted'],
    [`sslmode=require&sslrootcert=${join(folder, 'none')}`, 'localhost', 'cannot be read (ENOENT)'],
  ])('%s at %s: %s', async (more, host, expected) => {
    expect(await tryOut(more, host)).toContain(expected)
  })

  test('several hosts are checked one by one', async () => {
    const pair = url.replace('127.0.0.1', `localhost:${postgres.port},127.0.0.1`)
    const toMode = (mode: string) => tryOut(`sslmode=${mode}&sslrootcert=${ca}`, '127.0.0.1', pair)
    expect(await toMode('verify-full')).toBe('encrypted')
    expect(await toMode('verify-ca')).toBe('encrypted')
    expect(await tryOut(`sslmode=verify-ca&sslrootcert=${other}`, '127.0.0.1', pair)).not.toBe(
      'encrypted',
    )
  })

  test('a wrong password is reported through channel binding, too', async () => {
    const wrong = url.replace('secret', 'wrong')
    expect(await tryOut('channel_binding=require', 'localhost', wrong)).toContain(
      'rejected the user name or password',
    )
  })

  test('a server that signs in without a password offers no channel binding', async () => {
    const trusted = postgres.superuserUrl
    expect(await tryOut('sslmode=require', 'localhost', trusted)).toBe('encrypted')
    expect(await tryOut('channel_binding=require', 'localhost', trusted)).toContain(
      'offers no channel binding',
    )
  })

  test('a server can require the certificate of its client', async () => {
    const { cert, key } = clients.issue(['strict'], { isClient: true })
    const own = `sslcert=${save('client.pem', cert)}&sslkey=${save('client.key', key)}`
    const strict = url.replace(/\w+:secret/, 'strict')
    expect(await tryOut('sslmode=require', 'localhost', strict)).toContain('requires a certificate')
    expect(await tryOut(`sslmode=require&${own}`, 'localhost', strict)).toBe('encrypted')
  })

  test('a server starts with the certificate of its database checked, or says why not', async () => {
    const toUrl = (file: string) =>
      `${url.replace('127.0.0.1', 'localhost')}?sslmode=verify-full&sslrootcert=${file}`
    await waitUntilReachable(toUrl(ca))
    const run = (file: string) =>
      runProgram({ args: ['serve'], env: { DATABASE_URL: toUrl(file), PORT: '0' } })
    const refused = await run(other)
    expect(refused.code).toBe(1)
    expect(refused.output).toContain('The certificate of the database is not trusted.')
    expect((await run(join(folder, 'none'))).output).toContain(
      'sslrootcert with the path of a file',
    )
  })

  // The last test, because it changes the server.
  test('an expired certificate and a server without TLS are named', async () => {
    const verified = `sslmode=verify-ca&sslrootcert=${ca}`
    await postgres.setCertificate(authority.issue(['localhost'], { isExpired: true }))
    await until(async () => (await tryOut(verified)).includes('has expired'))
    expect(await tryOut('sslmode=require')).toBe('encrypted')

    await postgres.admin.unsafe(`create database open owner ${SERVER_ROLE}`)
    const open = url.replace(/test_\w+/, 'open')
    await postgres.setTls('off')
    await until(async () => (await tryOut('sslmode=require', 'localhost', open)).includes('no TLS'))
    expect(await tryOut('sslmode=prefer', 'localhost', open)).toBe('plain')
    expect(await tryOut('channel_binding=require', 'localhost', open)).toContain('has no TLS')
  })
})
