import { effect, type ReadonlySignal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import { SYSTEM_CLOCK } from '../live/clock.ts'
import { createThrottle } from '../live/throttle.ts'
import { request, type Failure, type Result } from '../request.ts'
import type { Args, Data, Input, RouteName } from '../routes.ts'
import { session } from '../session.ts'
import type { ComponentChildren } from 'preact'
import { ErrorNotice } from './standalone-page.tsx'

/** How often counts of the last hours, and what ends by itself, are loaded again. */
export const MINUTE_MS = 60_000
/** When a request is sent again that did not reach the server. */
const RETRY_MS = 10_000

export interface Query<Data> {
  /** Undefined until loaded. Kept while it is loaded again, and when that fails. */
  data: Data | undefined
  failure: Failure | undefined
  /** Loads again now, by `read` if it is given. */
  refetch(read?: () => Promise<Result<Data>>): Promise<void>
  /** Loads again if the page is visible, at most once in `pauseMs`. */
  refresh(): void
  /** Changes the data after the server has accepted a change. */
  change(edit: (data: Data) => Data): void
}

export interface QueryOptions<Data> {
  /** Loads again this long after the last answer, while the page is visible. */
  everyMs?: number | ((data: Data) => number | undefined)
  /** Loads again when this changes. */
  when?: ReadonlySignal<unknown>
  /** The shortest time between two loads that nobody has asked for. */
  pauseMs?: number
  /** Shows the data of another page at once, until the session ends. */
  isKept?: boolean
}

interface Answer<Data> {
  key?: string | undefined
  data?: Data | undefined
  failure?: Failure
}

/** The data of so many keys is kept. */
const MAX_KEPT = 20

const kept = new Map<string, unknown>()
effect(() => {
  if (session.value.kind === 'signed_out') kept.clear()
})

/** Loads the response of a route of /api, and again as `useQuery` does. */
export function useRoute<Name extends RouteName>(
  name: Name,
  ...rest: [...Args<Name>, options?: QueryOptions<Data<Name>>]
): Query<Data<Name>> {
  const [input, options] = rest as unknown as [Input<Name>, QueryOptions<Data<Name>>?]
  return useQuery(
    JSON.stringify([name, input]),
    () => request(name, ...([input] as Args<Name>)),
    options,
  )
}

/**
 * Loads data for each `key`, and again whenever the page becomes visible. The answer to an earlier
 * request never replaces that to a later one. A request ends with its key. Nothing is loaded
 * without a key.
 */
export function useQuery<Data>(
  key: string | undefined,
  ask: (signal?: AbortSignal) => Promise<Result<Data>>,
  { everyMs, when, pauseMs = 0, isKept = false }: QueryOptions<Data> = {},
): Query<Data> {
  const [answer, setAnswer] = useState<Answer<Data>>({})
  // The newest of what timers and former renders call.
  const now = useRef({
    key,
    ask,
    answer,
    sent: 0,
    shown: 0,
    refresh() {},
    end: new AbortController(),
  }).current
  now.key = key
  now.ask = ask
  now.answer =
    answer.key === key ? answer : { data: isKept ? (kept.get(key ?? '') as Data) : undefined }

  function show(answer: Answer<Data>) {
    now.answer = answer
    if (isKept) keep(answer)
    setAnswer(answer)
  }

  async function refetch(read: typeof ask = now.ask) {
    const { key } = now
    const request = ++now.sent
    const result = await read(now.end.signal)
    if (request < now.shown || key === undefined || key !== now.key) return
    now.shown = request
    if (result.ok) return show({ key, data: result.data })
    const { failure } = result
    const isGone = failure.code === 'not_found' || failure.code === 'forbidden'
    show({ key, failure, data: isGone ? undefined : now.answer.data })
  }

  function change(edit: (data: Data) => Data) {
    // Another page is shown by now.
    if (now.key !== key) return
    const { data } = now.answer
    // The answers on their way may be from before the change.
    const isReading = now.shown < now.sent
    now.shown = ++now.sent
    if (data !== undefined) show({ key, data: edit(data) })
    if (data === undefined || isReading) void refetch()
  }

  useEffect(() => {
    if (key === undefined) return
    const end = (now.end = new AbortController())
    let isFirst = true
    const { trigger, stop } = createThrottle(SYSTEM_CLOCK, pauseMs, () => {
      if (isFirst || !document.hidden) void refetch()
      isFirst = false
    })
    now.refresh = trigger
    trigger()
    let seen = when?.peek()
    const unsubscribe = when?.subscribe(value => {
      if (value !== seen) trigger()
      seen = value
    })
    document.addEventListener('visibilitychange', trigger, end)
    addEventListener('online', trigger, end)
    return () => {
      now.shown = ++now.sent
      stop()
      unsubscribe?.()
      end.abort()
    }
  }, [key, when])

  useEffect(() => {
    const { data, failure } = answer
    const every = typeof everyMs === 'function' ? data && everyMs(data) : everyMs
    const waitS = failure?.retryAfterS ?? 0
    const retryMs = failure?.code === 'unreachable' ? RETRY_MS : waitS * 1_000
    if (!every && !retryMs) return
    return SYSTEM_CLOCK.after(retryMs || (every ?? 0), () => now.refresh())
  }, [answer])

  const { data, failure } = now.answer
  return { data, failure, refetch, refresh: () => now.refresh(), change }
}

function keep({ key = '', data }: Answer<unknown>): void {
  kept.delete(key)
  if (data !== undefined) kept.set(key, data)
  const [oldest] = kept.keys()
  if (oldest !== undefined && kept.size > MAX_KEPT) kept.delete(oldest)
}

interface LoadedOptions<Data> {
  query: Pick<Query<Data>, 'data' | 'failure' | 'refetch'>
  /** Shown in place of a failure if the thing does not exist. */
  missing?: { title: string; text: string }
  children(data: Data): ComponentChildren
}

/** Renders the data of a query, or its loading or error state. */
export function Loaded<Data>({ query, missing, children }: LoadedOptions<Data>) {
  const { data, failure, refetch } = query
  if (missing && failure?.code === 'not_found') {
    return (
      <div class="empty-state">
        <h1>{missing.title}</h1>
        <p>{missing.text}</p>
      </div>
    )
  }
  return (
    <>
      {failure && <ErrorNotice failure={failure} onRetry={() => void refetch()} />}
      {data === undefined && !failure && (
        <div role="status" aria-label="Loading" class="loading">
          <span class="skeleton line w75" />
          <span class="skeleton line w50" />
          <span class="skeleton line w60" />
        </div>
      )}
      {data !== undefined && children(data)}
    </>
  )
}
