import { execFileSync } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SERVER_ROLE } from '../../../src/database/embedded/cluster.ts'
import { findPostgresUser } from '../../../src/database/embedded/folders.ts'
import type { Sql } from '../../../src/database/sql.ts'
import type { Certificate } from '../certificates.ts'
import { makeFolder } from '../scratch.ts'
import { openSql } from '../sql.ts'
import { hasTool } from '../tools.ts'
import { createNode } from './postgres-node.ts'

const BIN = '/usr/lib/postgresql/15/bin'
const USER = SERVER_ROLE
const PASSWORD = 'secret'
const LOCALES = { C: 'C', en_US: 'en_US.UTF-8' }

/** A PostgreSQL 15 as Debian builds it, which speaks TLS and has the locales of the machine. */
export interface DebianPostgres extends AsyncDisposable {
  port: number
  /** The URL of a superuser. */
  superuserUrl: string
  admin: Sql
  /** Returns the URL of a new empty database of the role of servers. `how` follows its owner. */
  createDatabase(how?: string): Promise<string>
  /** New connections get the change as soon as the postmaster has read it. */
  setTls(value: 'on' | 'off'): Promise<void>
  setCertificate(certificate: Certificate): Promise<void>
}

/** Returns whether Debian's package postgresql-15 is installed. */
export function hasDebianPostgres(): boolean {
  return hasTool(join(BIN, 'postgres'))
}

interface TlsOptions {
  certificate: Certificate
  /** The user `strict` needs a certificate of this authority. */
  clientCa: string
}

/** The source of the locale, of Debian's package locales. */
const EN_US = '/usr/share/i18n/locales/en_US'

/** Returns whether a cluster can have the locale en_US. */
export function hasEnUs(): boolean {
  const isThere = existsSync(EN_US)
  // The runner collects these lines.
  if (!isThere) console.warn(`Left out: tests that need ${EN_US}`)
  return isThere
}

/** Starts an empty cluster on loopback. With TLS, only the superuser can do without it. */
export async function startDebianPostgres({
  tls,
  locale = 'C',
}: { tls?: TlsOptions; locale?: 'C' | 'en_US' } = {}): Promise<DebianPostgres> {
  const home = makeFolder()
  const node = await createNode({
    ...{ bin: BIN, home, name: 'data' },
    settings: { ...(tls && { ssl_ca_file: 'root.crt' }) },
  })
  if (locale === 'en_US')
    execFileSync('/usr/bin/localedef', ['-i', EN_US, '-f', 'UTF-8', join(home, LOCALES.en_US)], {
      ...findPostgresUser(home),
      cwd: home,
    })
  const write = (name: string, text: string) => {
    writeFileSync(join(node.data, name), text, { mode: 0o600 })
    node.own(join(node.data, name))
  }
  node.initialize(LOCALES[locale])
  if (tls) {
    write('server.crt', tls.certificate.cert)
    write('server.key', tls.certificate.key)
    write('root.crt', tls.clientCa)
    write(
      'pg_hba.conf',
      `
host    all postgres   all trust
hostssl all strict     all trust clientcert=verify-ca
hostssl all ${USER} all scram-sha-256
hostnossl open ${USER} all scram-sha-256
`,
    )
  }
  await node.start()
  const superuserUrl = node.toUrl('postgres', 'postgres')
  const admin = openSql(superuserUrl)
  await admin.unsafe(`create role ${USER} login password '${PASSWORD}'`)
  await admin.unsafe('create role strict login')
  const setTls = async (value: 'on' | 'off') => {
    await admin.unsafe(`alter system set ssl = ${value}`)
    await admin`select pg_reload_conf()`
  }
  if (tls) await setTls('on')
  return {
    port: node.port,
    superuserUrl,
    admin,
    async createDatabase(how = '') {
      const name = `test_${crypto.randomUUID().replaceAll('-', '')}`
      await admin.unsafe(`create database ${name} owner ${USER} ${how}`)
      return node.toUrl(`${USER}:${PASSWORD}`, name)
    },
    setTls,
    async setCertificate({ cert, key }) {
      write('server.crt', cert)
      write('server.key', key)
      await admin`select pg_reload_conf()`
    },
    async [Symbol.asyncDispose]() {
      await admin.end({ timeout: 1 })
      await node.stop()
      rmSync(home, { recursive: true, force: true })
    },
  }
}
