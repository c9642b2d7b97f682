import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { connect as connectSocket, isIP, Socket } from 'node:net'
import {
  checkServerIdentity,
  connect as connectTls,
  type ConnectionOptions,
  type SecureVersion,
  type TLSSocket,
} from 'node:tls'
import type { Tls } from '../base/database-parameters.ts'
import { describeHost, type Host } from '../base/database-url.ts'
import { toReason } from '../base/errors.ts'
import { withTimeout } from '../base/functions.ts'

const CONNECT_MS = 3_000
/** Asks a Postgres whether it has TLS. */
const TLS_REQUEST = Buffer.from([0, 0, 0, 8, 4, 210, 22, 47])
const YES = 'S'.charCodeAt(0)
const NO = 'N'.charCodeAt(0)

/** A socket to a Postgres, connected and encrypted as its URL asks. */
export type DatabaseSocket = Socket & {
  /** The hash that SCRAM ties the password to. Undefined without `channel_binding=require`. */
  channelBinding?: Buffer
}

/** Opens a socket to a host. Rejects with the reason, or when `timeoutMs` have passed. */
export async function openSocket(
  host: Host,
  tls: Tls,
  timeoutMs = CONNECT_MS,
): Promise<DatabaseSocket> {
  const opened: Socket[] = []
  let isLate = false
  const opening = open(host, tls, opened, () => isLate)
  try {
    return await withTimeout(timeoutMs, opening, () => {
      isLate = true
      throw toTimeout(host)
    })
  } catch (error) {
    for (const socket of opened) socket.on('error', () => {}).destroy()
    throw error
  }
}

/**
 * Resolves to the socket that `open` opens, or to one that fails as soon as postgres.js listens to
 * it. A rejection would be lost.
 */
export async function openOrFail(open: () => Promise<Socket>): Promise<Socket> {
  try {
    return await open()
  } catch (error) {
    const socket = new Socket()
    setImmediate(() => socket.destroy(error instanceof Error ? error : new Error(toReason(error))))
    return socket
  }
}

async function open(
  host: Host,
  tls: Tls,
  opened: Socket[],
  isLate: () => boolean,
): Promise<DatabaseSocket> {
  const socket = await openTcp(host, opened)
  if (tls.mode === 'disable') return socket
  if (!tls.isDirect) {
    const answer = await askForTls(socket)
    if (answer === NO && tls.mode === 'prefer') return socket
    if (answer !== YES) throw toTlsError(host, 'has no TLS', 'ERR_TLS_NOT_SUPPORTED')
  }
  try {
    return await secure(socket, host, tls, opened)
  } catch (error) {
    if (tls.mode !== 'prefer' || isLate()) throw error
    return openTcp(host, opened)
  }
}

function openTcp({ host, port }: Host, opened: Socket[]): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const socket = connectSocket({ host, port })
  opened.push(socket)
  socket.once('error', reject)
  socket.once('connect', () => {
    socket.removeListener('error', reject)
    resolve(Object.assign(socket, { host, port }))
  })
  return promise
}

/** Resolves to the first byte of the answer. */
function askForTls(socket: Socket): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>()
  const onEnd = () => reject(toClosed())
  socket.once('error', reject)
  socket.once('close', onEnd)
  socket.once('data', (answer: Buffer) => {
    socket.removeListener('error', reject)
    socket.removeListener('close', onEnd)
    // Further bytes were not encrypted: an attacker between has sent them.
    if (answer.length === 1) resolve(answer[0])
    else reject(toClosed())
  })
  socket.write(TLS_REQUEST)
  return promise
}

function secure(
  socket: Socket,
  { host, port }: Host,
  tls: Tls,
  opened: Socket[],
): Promise<DatabaseSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<DatabaseSocket>()
  const secured = connectTls({ socket, ...toOptions(host, tls) })
  opened.push(secured)
  const onEnd = () => reject(toClosed())
  secured.once('error', reject)
  secured.once('close', onEnd)
  secured.once('secureConnect', () => {
    secured.removeListener('error', reject)
    secured.removeListener('close', onEnd)
    try {
      const channelBinding = tls.isBound ? toChannelBinding(secured) : undefined
      resolve(Object.assign(secured, { host, port, ...(channelBinding && { channelBinding }) }))
    } catch (error) {
      reject(error)
    }
  })
  return promise
}

function toOptions(host: string, tls: Tls): ConnectionOptions {
  const isChecked = tls.mode === 'verify-ca' || tls.mode === 'verify-full'
  return {
    ...(isIP(host) === 0 && { servername: host }),
    ...(tls.isDirect && { ALPNProtocols: ['postgresql'] }),
    ...(tls.minVersion && { minVersion: tls.minVersion as SecureVersion }),
    ...(tls.maxVersion && { maxVersion: tls.maxVersion as SecureVersion }),
    ...(tls.roots && { ca: readFileSync(tls.roots) }),
    ...(tls.cert && { cert: readFileSync(tls.cert) }),
    ...(tls.key && { key: readFileSync(tls.key) }),
    ...(tls.passphrase && { passphrase: tls.passphrase }),
    rejectUnauthorized: isChecked,
    // Without a name, the runtime would compare an address with "localhost".
    checkServerIdentity: (_, cert) =>
      tls.mode === 'verify-full' ? checkServerIdentity(host, cert) : undefined,
  }
}

/** The hashes of signatures by the end of their OID, in the DER of a certificate. */
const HASHES: Record<string, string> = {
  // RSA, with MD5 and SHA-1 replaced by SHA-256 (RFC 5929 §4.1).
  '2a864886f70d010104': 'sha256',
  '2a864886f70d010105': 'sha256',
  '2a864886f70d01010b': 'sha256',
  '2a864886f70d01010c': 'sha384',
  '2a864886f70d01010d': 'sha512',
  // ECDSA.
  '2a8648ce3d0401': 'sha256',
  '2a8648ce3d040302': 'sha256',
  '2a8648ce3d040303': 'sha384',
  '2a8648ce3d040304': 'sha512',
}

/** Returns the `tls-server-end-point` of a connection (RFC 5929 §4). */
function toChannelBinding(socket: TLSSocket): Buffer {
  const { raw } = socket.getPeerCertificate()
  const hash = HASHES[readSignatureId(raw)]
  if (hash === undefined)
    throw Object.assign(
      new Error('The certificate of the database has a signature that cannot be bound to'),
      { code: 'CHANNEL_BINDING_UNKNOWN' },
    )
  return createHash(hash).update(raw).digest()
}

/** Returns the OID of the signature algorithm, which follows the signed part of a certificate. */
function readSignatureId(der: Buffer): string {
  const signed = readElement(der, readElement(der, 0).from)
  const algorithm = readElement(der, signed.to)
  const id = readElement(der, algorithm.from)
  return der.subarray(id.from, id.to).toString('hex')
}

/** Returns where the content of a DER element begins and ends. */
function readElement(der: Buffer, at: number): { from: number; to: number } {
  const short = der[at + 1] ?? 0
  if (short < 0x80) return { from: at + 2, to: at + 2 + short }
  const from = at + 2 + (short & 0x7f)
  return { from, to: from + der.readUIntBE(at + 2, short & 0x7f) }
}

function toTimeout(host: Host): Error {
  return Object.assign(new Error(`${describeHost(host)} does not respond`), {
    code: 'CONNECT_TIMEOUT',
    address: host.host,
    port: host.port,
  })
}

function toClosed(): Error {
  return Object.assign(new Error('The database closed the connection'), {
    code: 'CONNECTION_CLOSED',
  })
}

function toTlsError(host: Host, what: string, code: string): Error {
  return Object.assign(new Error(`${describeHost(host)} ${what}`), { code })
}
