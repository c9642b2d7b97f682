import { afterAll, expect, test } from 'bun:test'
import { once } from 'node:events'
import { connect as connectSocket, createServer, type AddressInfo, type Server } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import { createPool } from '../../src/database/pool.ts'
import { connect } from '../../src/database/sql.ts'
import { createAuthority } from '../support/certificates.ts'
import { makeFolder } from '../support/scratch.ts'
import { until } from '../support/until.ts'

// Servers that speak a part of the protocol of Postgres, as an attacker or a slow machine would.

const AUTHENTICATED = Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 0])
const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49])
const servers: Server[] = []
afterAll(() => {
  for (const server of servers) server.close()
})

async function listen(server: Server): Promise<number> {
  servers.push(server)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

test('a pool that leaves a server while it connects keeps no session there', async () => {
  let sessions = 0
  const answering = Promise.withResolvers<void>()
  let asked = 0
  const port = await listen(
    createServer(socket => {
      sessions++
      socket.on('error', () => {}).on('close', () => sessions--)
      // The request for TLS, and then the startup message.
      socket.once('data', async () => {
        asked++
        await answering.promise
        socket.once('data', () => socket.write(Buffer.concat([AUTHENTICATED, READY])))
        socket.write('N')
      })
    }),
  )
  const url = `postgres://u:p@127.0.0.1:${port}/db?sslmode=prefer`
  const pool = createPool(url, { name: 'test', max: 5 })
  const waiting = Array.from({ length: 5 }, () =>
    pool.run(sql => sql`select`).catch(() => 'failed'),
  )
  await until(() => asked === 5)
  pool.leave()
  expect(await Promise.all(waiting)).toEqual(Array(5).fill('failed'))
  answering.resolve()
  await until(() => sessions === 0)
  await pool.end()
})

test('a server without authentication gets no statement if the URL requires channel binding', async () => {
  const authority = createAuthority()
  const certificate = authority.issue(['localhost'])
  let isStarted = false
  let received = ''
  const tls = await listen(
    createTlsServer(certificate, socket => {
      socket.on('error', () => {})
      socket.once('data', () => {
        isStarted = true
        socket.write(READY)
        socket.on('data', (data: Buffer) => (received += data.toString('latin1')))
      })
    }),
  )
  const port = await listen(
    createServer(socket => {
      socket
        .on('error', () => {})
        .once('data', () => {
          socket.write('S')
          const inner = connectSocket(tls, '127.0.0.1').on('error', () => {})
          socket.pipe(inner).pipe(socket)
        })
    }),
  )
  const url = `postgres://u:p@localhost:${port}/db?sslmode=require&channel_binding=require`
  const sql = connect(url, { name: 'test', max: 1 })
  const error = await sql`select 'a secret'`.then(
    () => undefined,
    (one: unknown) => one,
  )
  expect(error).toMatchObject({ code: 'CHANNEL_BINDING_MISSING' })
  expect([isStarted, received]).toEqual([true, ''])
  await sql.end({ timeout: 0 })
})

test('a socket file is used whatever sslmode says', async () => {
  const folder = makeFolder()
  const url = `postgres://u:p@localhost:1/db?host=${folder}&sslmode=prefer`
  const sql = connect(url, { name: 'test', max: 1 })
  const error = await sql`select`.then(
    () => undefined,
    (one: unknown) => one,
  )
  expect(error).toMatchObject({ code: 'ENOENT', syscall: 'connect' })
  await sql.end({ timeout: 0 })
})
