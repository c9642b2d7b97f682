import { Elysia } from 'elysia'
import { Fault, toReason } from '../base/errors.ts'
import { isDebugging, limitLines, logger } from '../base/log.ts'
import { countRequest } from '../base/metrics.ts'
import { tooManyAtOnce, type Semaphore } from '../base/semaphore.ts'
import { compress } from './compression.ts'
import { toSuccess } from './envelope.ts'
import { toFailure, type ResponseParts } from './failures.ts'
import type { Issue } from './rules.ts'

const log = logger('http')

/** The state of one request, from its arrival to its response. */
export interface Call {
  readonly requestId: string
  /** The arrival, as `performance.now()`. */
  readonly startedMs: number
  readonly method: string
  /** The path of its route, with parameters as `:name`, or `none` until a route matches. */
  route: string
  /** Headers of its response, successful or not. */
  headers: Readonly<Record<string, string>>
  /** True if a response may be compressed. */
  acceptsGzip: boolean
  /** Issues with text in path, query and body that no schema reports. */
  issues: readonly Issue[]
  /** A check whose failure comes before any other failure of the call, if it is still due. */
  checkFirst: (() => Promise<void>) | undefined
  /** Writes the body of a failure, if programs of another server read it. */
  toFailureBody: ((failure: ResponseParts) => string) | undefined
  /** Called with what the handler throws. */
  onFailure: ((error: unknown) => void) | undefined
  /** Releases what the request holds until its response: memory, and a concurrency slot. */
  release: (() => void) | undefined
}

/**
 * A call that passed the guard of its route. `succeed` takes no other, so every such route has a
 * guard.
 */
export interface GuardedCall extends Call {
  readonly guard: 'key' | 'session'
}

export function newCall(method: string): Call {
  return {
    requestId: crypto.randomUUID(),
    startedMs: performance.now(),
    method,
    route: 'none',
    headers: {},
    acceptsGzip: false,
    issues: [],
    checkFirst: undefined,
    toFailureBody: undefined,
    onFailure: undefined,
    release: undefined,
  }
}

/**
 * Adds the call to every Elysia context as `exchange`. Guards then add it as `call`, with more
 * fields.
 */
export const withCall = new Elysia({ name: 'call' }).decorate('exchange', newCall(''))

/**
 * Takes a concurrency slot of `key` for the rest of the call. Returns whether the call had to wait
 * for it.
 */
export async function acquireSlot(
  call: Call,
  concurrency: Semaphore,
  key: string,
): Promise<boolean> {
  const { waiting } = concurrency
  const acquired = concurrency.acquire(key)
  const mustWait = concurrency.waiting > waiting
  const release = await acquired
  if (!release) throw tooManyAtOnce()
  hold(call, release)
  return mustWait
}

/** Calls `release` when the call ends. */
export function hold(call: Call, release: () => void): void {
  const { release: before } = call
  call.release = before ? () => (before(), release()) : release
}

type Extra = Pick<ResponseParts, 'headers' | 'cookies'>

/** Responds with the success envelope around `data`. */
export function succeed(
  call: GuardedCall,
  status: 200 | 201 | 202,
  data: object,
  extra?: Extra,
): Response {
  return succeedJson(call, status, JSON.stringify(data), extra)
}

/** Responds with the success envelope around `dataJson`, which is JSON text. */
export function succeedJson(
  call: GuardedCall,
  status: 200 | 201 | 202,
  dataJson: string,
  extra: Extra = {},
): Response {
  return respond(call, { status, body: toSuccess(dataJson, call.requestId), ...extra })
}

// A member can repeat a download that fails.
const warnOfCut = limitLines<string>((reason, count, requestId) =>
  log.warning('{count} downloads were cut off: {reason}', { count, reason, requestId }),
)

/** A file that is written while it is sent. */
interface StreamedFile {
  name: string
  contentType: string
  /** Parts of its text. Each one is read when the client has taken those before it. */
  parts: AsyncIterable<string>
}

const endsOfFiles = new WeakMap<Response, Promise<void>>()

/** Resolves when the file of a response is read, or was given up. Undefined for other responses. */
export function untilSent(response: Response): Promise<void> | undefined {
  return endsOfFiles.get(response)
}

/**
 * Responds with a file to download. Rejects if the first part cannot be read. A later failure ends
 * the connection, so that the client sees that the file is incomplete. The call keeps what it
 * holds until the end.
 */
export async function succeedFile(
  call: GuardedCall,
  { name, contentType, parts }: StreamedFile,
): Promise<Response> {
  const iterator = parts[Symbol.asyncIterator]()
  const encoder = new TextEncoder()
  const first = await iterator.next()
  let next: Promise<IteratorResult<string>> | undefined = Promise.resolve(first)
  const { release } = call
  call.release = undefined
  const sent = Promise.withResolvers<void>()
  const end = () => {
    release?.()
    sent.resolve()
  }
  let isCancelled = false
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await (next ?? iterator.next())
          next = undefined
          // The client has gone while the part was read.
          if (isCancelled) return
          if (!done) return controller.enqueue(encoder.encode(value))
          end()
          controller.close()
        } catch (error) {
          end()
          if (isCancelled) return
          warnOfCut(toReason(error), call.requestId)
          controller.error(error)
        }
      },
      async cancel() {
        isCancelled = true
        end()
        log.debug('A client gave up a download', { requestId: call.requestId })
        await iterator.return?.()
      },
    },
    { highWaterMark: 0 },
  )
  const headers = {
    'Content-Type': contentType,
    'Content-Disposition': `attachment; filename="${name}"`,
  }
  const response = respond(call, { status: 200, body, headers })
  endsOfFiles.set(response, sent.promise)
  return response
}

/** Responds with the failure that `toFailure` makes of a thrown value. */
export function fail(call: Call, error: unknown): Response {
  call.onFailure?.(error)
  // A project can be deleted during the request. Every 401 looks the same, without rate limit
  // headers.
  if (error instanceof Fault && error.code === 'unauthorized') call.headers = {}
  const failure = toFailure(error, call.requestId)
  return respond(call, { ...failure, body: call.toFailureBody?.(failure) ?? failure.body })
}

/**
 * Ends a call with a response, JSON by default: releases what it holds, counts it and logs it.
 * Throws if a check is still due.
 */
export function respond(
  call: Call,
  {
    status,
    body,
    headers,
    cookies,
  }: Omit<ResponseParts, 'body'> & { body: string | ReadableStream<Uint8Array> },
): Response {
  if (call.checkFirst) throw new Error('A check of the call is still due')
  call.release?.()
  call.release = undefined
  const { route, requestId } = call
  countRequest(call, status)
  if (isDebugging()) log.debug('{route} {status}', { requestId, route, status })
  const packed = call.acceptsGzip && typeof body === 'string' ? compress(body) : undefined
  const response = new Response(packed ?? body, {
    status,
    headers: {
      'Content-Type': 'application/json; charset=utf-8',
      'Cache-Control': 'no-store',
      'X-Content-Type-Options': 'nosniff',
      'X-Request-Id': requestId,
      ...call.headers,
      ...headers,
      ...(packed && { 'Content-Encoding': 'gzip' }),
    },
  })
  for (const cookie of cookies ?? []) response.headers.append('Set-Cookie', cookie)
  return response
}
