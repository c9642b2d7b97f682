import { randomInt } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'

/** The port kept in `file` while it is free, else a random free one, which is then kept. */
export async function chooseFreePort(file: string, host: string): Promise<number> {
  const kept = readPort(file)
  if (kept !== undefined && (await isFree(kept, host))) return kept
  const port = await findFreePort(host)
  writeFileSync(file, `${port}\n`)
  return port
}

/**
 * A random free port. Not one that the system gives to outgoing connections (from 32768): while Postgres is down, one of
 * those could take it.
 */
export async function findFreePort(host: string): Promise<number> {
  for (let tries = 0; tries < 50; tries++) {
    const port = randomInt(20_000, 32_000)
    if (await isFree(port, host)) return port
  }
  throw new Error(`No free port on ${host}`)
}

/** The port kept in `file`. */
export function readPort(file: string): number | undefined {
  try {
    return Number(readFileSync(file, 'utf8')) || undefined
  } catch {
    return undefined
  }
}

function isFree(port: number, host: string): Promise<boolean> {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, host, () => server.close(() => resolve(true)))
  })
}
