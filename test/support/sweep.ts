import type { Sql } from '../../src/database/sql.ts'
import type { Held, Passing, TcpProxy } from './servers/tcp-proxy.ts'

/** The ways in which a message of the product to Postgres fails. */
const CLIENT_WAYS = [
  /** The connection ends before the message arrives. */
  'lost',
  /** The message arrives, and the connection ends before the answer. */
  'unanswered',
  /** Postgres answers that another transaction has to go first. */
  'deadlock',
  /** Postgres answers with an error that no retry removes. */
  'refused',
  /** An administrator ends the session. */
  'terminated',
] as const
/** The same for a message of Postgres. */
const SERVER_WAYS = [
  /** The connection ends in the middle of the message. */
  'torn',
] as const
type Way = (typeof CLIENT_WAYS | typeof SERVER_WAYS)[number]

/** One message of a transaction, and how it fails. */
export interface Failure {
  message: Passing
  /** The position of the message in the transaction, from 0. */
  nth: number
  /** The number of equal messages before it. */
  equals: number
  way: Way
  /** The statements that are committed before, whatever becomes of the answer. */
  committed: readonly string[]
}

/** A database with the proxy through which the product reaches it. */
export interface Lane {
  proxy: TcpProxy
  /** Connections past the proxy. */
  sql: Sql
}

/** A transaction to sweep. A subject has what one run of it needs, such as a project. */
export interface Transaction<Place extends Lane, Subject> {
  /**
   * Makes the subject of a run. Connections are then always in the same state, open or closed. The
   * name says what fails in the run.
   */
  prepare(lane: Place, name: string): Promise<Subject>
  /**
   * Runs the transaction once. Resolves when it is over, with any outcome. `failed` resolves when
   * its message has failed, and Postgres has ended the session if it does.
   */
  run(subject: Subject, failed: Promise<Failure>): Promise<void>
  /** True for the messages of the transaction. */
  belongs(passing: Passing): boolean
  /**
   * Brings the work to its end, as a client or another server would do it. Returns a sentence for
   * each broken promise. `failure` is undefined if nothing failed.
   */
  check(subject: Subject, failure: Failure | undefined): Promise<string[]>
}

/**
 * True if a run has committed the statement that contains `text` when it fails. An undisturbed run
 * has.
 */
export function hasCommitted(failure: Failure | undefined, text: string): boolean {
  return failure?.committed.some(statement => statement.includes(text)) ?? true
}

/**
 * True for messages that are the same on every connection. The others open it, or prepare a
 * statement, which happens once on each connection.
 */
export function isOfExecution({ from, type, statement }: Passing): boolean {
  if (statement === '') return false
  return from === 'client' ? /^[BESQ]$/.test(type) : /^[2DCZ]$/.test(type)
}

interface SweepResult {
  /** The messages of an undisturbed run, such as `client B`. */
  messages: string[]
  /** The number of failed runs. */
  runs: number
  problems: string[]
}

/** How often a run is repeated because its message did not come, as on a very busy machine. */
const MAX_TRIES = 3

/**
 * Runs a transaction undisturbed, and counts its messages. Then makes each of them fail in every
 * way, once. The lanes share the runs.
 */
export async function sweep<Place extends Lane, Subject>(
  lanes: readonly Place[],
  transaction: Transaction<Place, Subject>,
): Promise<SweepResult> {
  const clean = await Promise.all(lanes.map(lane => runOnce(lane, transaction)))
  const messages = clean[0]?.messages ?? []
  const problems = clean.flatMap(one => one.problems)
  const failures = listFailures(messages)
  await Promise.all(
    lanes.map(async (lane, nth) => {
      for (const failure of failures.filter((_, place) => place % lanes.length === nth)) {
        const found = await runUntilFailed(lane, transaction, failure)
        problems.push(...found.map(text => `${toName(failure)}: ${text}`))
      }
    }),
  )
  return {
    messages: messages.map(({ from, type }) => `${from} ${type}`),
    runs: failures.length,
    problems,
  }
}

/** Runs a transaction that fails. Returns the problems. */
async function runUntilFailed<Place extends Lane, Subject>(
  lane: Place,
  transaction: Transaction<Place, Subject>,
  failure: Failure,
): Promise<string[]> {
  try {
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const { hasFailed, problems } = await runOnce(lane, transaction, failure)
      if (hasFailed) return problems
    }
    return ['the message did not come']
  } catch (error) {
    return [String(error)]
  }
}

async function runOnce<Place extends Lane, Subject>(
  lane: Place,
  { prepare, run, belongs, check }: Transaction<Place, Subject>,
  failure?: Failure,
): Promise<{ messages: Passing[]; hasFailed: boolean; problems: string[] }> {
  const subject = await prepare(lane, failure ? toName(failure) : 'an undisturbed run')
  const messages: Passing[] = []
  let hasFailed = false
  const watch = lane.proxy.watch(passing => {
    // The end of a pool is not a part of the transaction.
    if (passing.type === 'X' || !belongs(passing)) return false
    messages.push(passing)
    return failure !== undefined && isDue(failure, messages)
  })
  const failed = watch.held.then(async held => {
    hasFailed = true
    // Only a failure ends the watch.
    await fail(lane, held, failure!.way)
    return failure!
  })
  await run(subject, failed)
  watch.end()
  const problems = await check(subject, hasFailed ? await failed : undefined)
  return { messages, hasFailed, problems }
}

/** True if the last of these messages is the one that fails. */
function isDue({ message, equals }: Failure, messages: readonly Passing[]): boolean {
  const last = messages.at(-1)
  return last !== undefined && isEqual(last, message) && countEquals(messages, last) === equals + 1
}

function countEquals(messages: readonly Passing[], message: Passing): number {
  return messages.filter(one => isEqual(one, message)).length
}

function isEqual(one: Passing, other: Passing): boolean {
  return one.from === other.from && one.type === other.type && one.statement === other.statement
}

/** Makes a message fail. Resolves when Postgres has ended its transaction, if it does. */
async function fail({ sql }: Lane, held: Held, way: Way): Promise<void> {
  switch (way) {
    case 'lost':
      held.cut()
      return held.ended
    case 'torn':
      held.cutWithin()
      return held.ended
    case 'unanswered':
      held.passAndCut()
      return held.ended
    case 'deadlock':
      return held.fail('40P01')
    case 'refused':
      return held.fail('XX000')
    case 'terminated':
      await sql`select pg_terminate_backend(${held.pid ?? 0})`
      return held.ended
  }
}

/** Lists each message with each way to fail. */
function listFailures(messages: readonly Passing[]): Failure[] {
  const failures: Failure[] = []
  const committed: string[] = []
  let block: string[] | undefined
  for (const [nth, message] of messages.entries()) {
    const before = [...committed]
    const { from, type, statement } = message
    const equals = countEquals(messages.slice(0, nth), message)
    const name = statement.trim()
    if (type === 'Q' && name === 'begin') block = []
    // Postgres commits when it executes `commit`; a statement alone, at the Sync.
    else if (type === 'E' && name === 'commit') {
      committed.push(...(block ?? []))
      block = undefined
    } else if (type === 'S' && from === 'client' && name !== 'commit') {
      ;(block ?? committed).push(statement)
    }
    for (const way of from === 'client' ? CLIENT_WAYS : SERVER_WAYS) {
      if (!isPossible(message, way)) continue
      const done = way === 'unanswered' ? [...committed] : before
      failures.push({ message, nth, equals, way, committed: done })
    }
  }
  return failures
}

/** False for ways that say nothing about the product. */
function isPossible({ type, statement }: Passing, way: Way): boolean {
  // A session that has not begun has nothing to terminate. `p` is an answer with the password.
  if (type === '' || type === 'p') return way !== 'terminated'
  // A message that arrives alone does no more than the next one that is lost. Postgres skips the
  // messages after an error, and one of Bind or Describe looks like that of the Execute after them.
  if (type === 'B' || type === 'D') return way === 'lost' || way === 'torn'
  if (type === 'E' || type === 'P') return way !== 'unanswered'
  // Its commit was executed, so Postgres has no error, and may have ended the transaction or not.
  if (type === 'S' && statement === 'commit') return ['lost', 'unanswered', 'torn'].includes(way)
  return type !== 'S' || way !== 'terminated'
}

function toName({ message: { from, type, statement }, nth, way }: Failure): string {
  const text = statement.replaceAll(/\s+/g, ' ').trim().slice(0, 60)
  return `message ${nth} (${from} ${type || 'start'} of "${text}") ${way}`
}
