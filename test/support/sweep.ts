import type { Sql } from '../../src/db/sql.ts'
import type { Held, Passing, TcpProxy } from './tcp-proxy.ts'

/** The ways in which a message from the server to Postgres fails. */
const CLIENT_WAYS = [
  /** The connection ends before the message arrives. */
  'lost',
  /** The connection ends in the middle of the message. */
  'torn',
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
const SERVER_WAYS = ['lost', 'torn'] as const
type Way = (typeof CLIENT_WAYS)[number]

/** One message of a transaction, and how it fails. */
export interface Failure {
  /** The position of the message in the transaction, from 0. */
  nth: number
  message: Passing
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
  /** Makes a fresh subject. Connections are then always in the same state, open or closed. */
  prepare(lane: Place): Promise<Subject>
  /** Runs the transaction once. Resolves when it is over, with any outcome. */
  run(subject: Subject): Promise<void>
  /** True for the messages of the transaction. */
  belongs(passing: Passing): boolean
  /**
   * Brings the work to its end, as a client or another server would do it. Returns a sentence for
   * each broken promise. `failure` is undefined if nothing failed.
   */
  check(subject: Subject, failure: Failure | undefined): Promise<string[]>
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
        let found = await runOnce(lane, transaction, failure)
        for (let tries = 1; tries < MAX_TRIES && !found.hasFailed; tries++)
          found = await runOnce(lane, transaction, failure)
        const missing = found.hasFailed ? [] : ['the message did not come']
        const name = toName(failure)
        problems.push(...[...missing, ...found.problems].map(text => `${name}: ${text}`))
      }
    }),
  )
  return {
    messages: messages.map(({ from, type }) => `${from} ${type}`),
    runs: failures.length,
    problems,
  }
}

async function runOnce<Place extends Lane, Subject>(
  lane: Place,
  { prepare, run, belongs, check }: Transaction<Place, Subject>,
  failure?: Failure,
): Promise<{ messages: Passing[]; hasFailed: boolean; problems: string[] }> {
  const subject = await prepare(lane)
  const messages: Passing[] = []
  let failing: Promise<void> | undefined
  const watch = lane.proxy.watch(passing => {
    if (!belongs(passing)) return false
    messages.push(passing)
    return messages.length - 1 === failure?.nth
  })
  void watch.held.then(held => {
    failing = fail(lane, held, failure?.way ?? 'lost')
  })
  await run(subject)
  watch.end()
  await failing
  const problems = await check(subject, failing && failure)
  return { messages, hasFailed: failing !== undefined, problems }
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
    if (from === 'client') {
      if (statement === 'begin') block = []
      else if (statement === 'commit' || statement === 'rollback') {
        if (statement === 'commit') committed.push(...(block ?? []))
        block = undefined
      } else if (type === 'S') (block ?? committed).push(statement)
    }
    for (const way of from === 'client' ? CLIENT_WAYS : SERVER_WAYS) {
      // A session that has not begun has nothing to terminate.
      if (way === 'terminated' && type === '') continue
      failures.push({
        nth,
        message,
        way,
        committed: way === 'unanswered' ? [...committed] : before,
      })
    }
  }
  return failures
}

function toName({ nth, message: { from, type, statement }, way }: Failure): string {
  const text = statement.replaceAll(/\s+/g, ' ').trim().slice(0, 60)
  return `message ${nth} (${from} ${type || 'start'} of "${text}") ${way}`
}
