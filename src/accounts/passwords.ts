import { randomBytes } from 'node:crypto'
import { Fault } from '../errors.ts'
import { invalidField } from '../http/validation.ts'
import { findPasswordProblem, toPassword, type Owner } from '../passwords/policy.ts'
import * as platform from '../platform.ts'

const MAX_AT_ONCE = 4
const MAX_WAITING = 32

/** Throws `Invalid` at `field` unless a person may have this password. */
export function checkPassword(password: string, owner: Owner, field = 'password'): void {
  const problem = findPasswordProblem(password, owner)
  if (problem) throw invalidField(field, problem.code, problem.message)
}

/** The argon2id hash of a password. Throws `unavailable` when too many are asked for at once. */
export function hashPassword(password: string): Promise<string> {
  return inTurn(() => platform.hashPassword(toPassword(password)))
}

/**
 * Whether a person with this hash has this password. Without a hash nobody has, which takes as long to say: so nobody
 * learns who has an account. Throws `unavailable` like `hashPassword`.
 */
export async function verifyPassword(password: string, hash: string | null): Promise<boolean> {
  const isRight = await inTurn(() => platform.verifyPassword(toPassword(password), hash ?? NOBODYS))
  return isRight && hash !== null
}

// The digest is random, too: it is that of no password that anybody knows.
const NOBODYS = `$argon2id$v=19$m=19456,t=2,p=1$${toBase64(randomBytes(32))}$${toBase64(randomBytes(32))}`

function toBase64(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '')
}

// Of the process, because what they are short of is its processors and memory (19 MiB each).
const waiting: (() => void)[] = []
let running = 0

async function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  if (running < MAX_AT_ONCE) running++
  else if (waiting.length < MAX_WAITING) await new Promise<void>(resolve => waiting.push(resolve))
  else throw new Fault('unavailable', 'Too many people sign in at once, try again shortly')
  try {
    return await work()
  } finally {
    // The next one takes the turn over.
    const next = waiting.shift()
    if (next) next()
    else running--
  }
}
