import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { findFreePort } from '../loopback.ts'
import { makeFolder } from '../scratch.ts'

// PgBouncer does not run as root.
const NOBODY = 65_534

/** Starts PgBouncer in transaction mode before the cluster of a database. */
export async function startPooler(
  databaseUrl: string,
  ignored: string,
): Promise<{ url: string; [Symbol.asyncDispose](): Promise<void> }> {
  const { username, password, pathname, port, searchParams } = new URL(databaseUrl)
  const own = await findFreePort()
  const file = join(makeFolder(), 'pgbouncer.ini')
  const host = searchParams.get('host')
  writeFileSync(
    file,
    `[databases]
* = host=${host} port=${port || 5432} user=${username}${password && ` password=${password}`}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own}
unix_socket_dir =
auth_type = any
pool_mode = transaction
# Fewer than the connections of one server.
default_pool_size = 8
ignore_startup_parameters = ${ignored}
`,
  )
  const isRoot = process.getuid?.() === 0
  if (isRoot) chownSync(file, NOBODY, NOBODY)
  const child = spawn('pgbouncer', [file], {
    stdio: ['ignore', 'ignore', 'pipe'],
    ...(isRoot && { uid: NOBODY, gid: NOBODY }),
  })
  const exited = once(child, 'exit')
  let log = ''
  const ready = new Promise<void>(resolve =>
    child.stderr.on('data', chunk => {
      log += chunk
      if (log.includes('process up')) resolve()
    }),
  )
  await Promise.race([
    ready,
    exited.then(() => Promise.reject(new Error(`PgBouncer did not start:\n${log}`))),
  ])
  return {
    url: `postgres://tidings@127.0.0.1:${own}${pathname}`,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await exited
    },
  }
}

let shared: ReturnType<typeof startPooler> | undefined

/**
 * Returns the URL of a database of the tests' cluster through a PgBouncer, which all callers of
 * this process share.
 */
export async function toPooledUrl(databaseUrl: string): Promise<string> {
  const url = new URL((await (shared ??= startPooler(databaseUrl, ''))).url)
  url.pathname = new URL(databaseUrl).pathname
  url.searchParams.set('pgbouncer', 'true')
  return url.href
}

/** Stops the PgBouncer of `toPooledUrl`, if there is one. */
export async function stopPooler(): Promise<void> {
  await (await shared)?.[Symbol.asyncDispose]()
  shared = undefined
}
