import { UUID_V4 } from '../support/answers.ts'
import type { RawAnswer } from '../support/clients/raw-http.ts'
import { checkDeclared } from '../support/conformance.ts'

/** Patterns that no answer may contain: paths, dependencies and internal errors of the program. */
const INTERNALS: [what: string, pattern: RegExp][] = [
  ['a stack', /\n\s*at |\bat \S+ \(|:\d+:\d+\b/],
  ['a file', /node_modules|\/src\/|\.ts\b|file:\/\/|\/tmp\/|\/home\/|\/root\//],
  [
    'SQL',
    /\b(select|insert into|update \w+ set|delete from|where|constraint|relation|column|jsonb|text\[\])\b/,
  ],
  [
    'Postgres',
    /postgres|sqlstate|\bpg_\w|\bplpgsql\b|\b(?:0[18AB]|2[1-8]|4[0-4]|5[3-8]|P0|XX)[0-9A-Z]{3}\b/i,
  ],
  ['a class', /\b[A-Z]\w*(?:Error|Exception|Fault)\b|\bTypeBox\b|\bElysia\b|\bBun\b/],
  ['a value of JavaScript', /\[object |\bundefined\b|\bNaN\b|\bfunction\b/],
]
const FAILURES: Record<number, string[]> = {
  400: ['success', 'error', 'details', 'requestId'],
  401: ['error', 'message'],
  429: ['success', 'error', 'message', 'requestId'],
}
const FAILURE = ['success', 'error', 'code', 'requestId']

/** Checks one answer of /v1; throws if it violates the document or the contract. */
export type AnswerCheck = (method: string, target: string, answer: RawAnswer) => Promise<void>

export function createAnswerCheck(url: string, secrets: readonly string[]): AnswerCheck {
  return async (method, target, answer) => {
    const { status, headers, text } = answer
    judge(answer, secrets, target.split('?')[0])
    await checkDeclared({ url: `${url}${target}`, method, status, headers, text })
  }
}

function judge(answer: RawAnswer, secrets: readonly string[], pathname = ''): void {
  const { status, headers, text, body } = answer
  const fail = (reason: string): never => {
    throw new Error(`Answered ${status}: ${reason}\n${text.slice(0, 2_000)}`)
  }
  if (status >= 500) fail('a failure of the server')
  for (const secret of secrets) if (text.includes(secret)) fail('it shows a secret')
  if (headers.get('cache-control') !== 'no-store') fail('it may be kept by caches')
  if (!UUID_V4.test(headers.get('x-request-id') ?? '')) fail('no X-Request-Id')
  const isReplay = headers.has('x-idempotent-replay')
  if (status !== 401) {
    if (!UUID_V4.test(body?.requestId)) fail('no requestId')
    if ((body.requestId === headers.get('x-request-id')) === isReplay) fail('a wrong requestId')
  }
  if (body?.success !== (status === 401 ? undefined : status < 400)) fail('success does not fit')
  if (status < 400) return
  const fields = FAILURES[status] ?? FAILURE
  if (Object.keys(body).join() !== fields.join()) fail(`not exactly the fields ${fields.join()}`)
  const words = toWords(answer, pathname)
  for (const [what, pattern] of INTERNALS) if (pattern.test(words)) fail(`it shows ${what}`)
}

/** Returns the server's own words in a failure, without repeated paths of URLs and fields. */
function toWords({ body }: RawAnswer, pathname: string): string {
  const { details = [], requestId: _, ...rest } = body
  const messages = details.map(({ message, code }: { message: string; code: string }) => [
    message,
    code,
  ])
  return JSON.stringify({ ...rest, messages }, null, 1).replaceAll(
    JSON.stringify(pathname).slice(1, -1),
    '',
  )
}
