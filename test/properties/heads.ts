import type { ApiRequest } from './requests.ts'

/** A change of a request's head, with the expected answer: unchanged, or one of some statuses. */
export interface HeadChange {
  name: string
  /** Returns undefined if the change does not apply to the request. */
  apply(request: ApiRequest, key: string): ApiRequest | undefined
  expected: 'same' | number[]
}

const CLAIMED_ID = '00000000-0000-4000-8000-000000000000'

const type = (value: string) => (request: ApiRequest) =>
  isJson(request) ? { ...request, headers: replace(request, 'Content-Type', value) } : undefined
const add =
  (...headers: [string, string][]) =>
  (request: ApiRequest): ApiRequest => ({ ...request, headers: [...request.headers, ...headers] })
const onBody =
  (...headers: [string, string][]) =>
  (request: ApiRequest) =>
    request.body === undefined ? undefined : add(...headers)(request)
const authorize =
  (...values: ((key: string) => string)[]) =>
  (request: ApiRequest, key: string): ApiRequest => ({
    ...request,
    authorization: values.map(value => value(key)),
  })
const keyed = (value: string) => (request: ApiRequest) =>
  request.body === undefined
    ? undefined
    : { ...request, headers: replace(request, 'Idempotency-Key', value) }
const aimed = (change: (target: string) => string) => (request: ApiRequest) => ({
  ...request,
  target: change(request.target),
})
const asked = aimed(target => `${target}${target.includes('?') ? '&' : '?'}x=%ff&y`)
/** Returns true if the route has parameters in its query. */
const method = (value: string) => (request: ApiRequest) =>
  request.body === undefined ? { ...request, method: value } : undefined

const group = (expected: HeadChange['expected'], changes: Record<string, HeadChange['apply']>) =>
  Object.entries(changes).map(([name, apply]): HeadChange => ({ name, apply, expected }))

/** Changes of headers, method and target. */
export const HEAD_CHANGES: HeadChange[] = [
  ...group('same', {
    'JSON in other letters': type('Application/JSON; Charset=UTF-8'),
    'JSON with a quoted charset': type('application/json ; charset="utf-8"'),
    'JSON with another parameter': type('application/json;x=y'),
    'no type': type(''),
    'a claimed X-Request-Id': add(['X-Request-Id', CLAIMED_ID]),
    'no encoding': onBody(['Content-Encoding', 'identity']),
    'another method claimed': add(['X-HTTP-Method-Override', 'DELETE']),
    'a forged address': add(['X-Forwarded-For', "'; select 1 --, ::1, \xff"]),
    'a forged host': add(['X-Forwarded-Host', 'evil.example'], ['Forwarded', 'host=evil.example']),
    'a browser': add(
      ['Origin', 'null'],
      ['Cookie', 'a={"b":1}; session=x'],
      ['Accept', 'text/html'],
    ),
    'a cache': add(['If-None-Match', '*'], ['Range', 'bytes=0-1'], ['Accept-Encoding', 'br, gzip']),
    'bytes that are no text': add(['X-Odd', '\x80\xff"\\{}']),
    'many headers': add(...Array.from({ length: 80 }, (_, n): [string, string] => [`X-${n}`, 'x'])),
    'bearer in small letters': authorize(key => `bearer ${key}`),
    'two spaces': authorize(key => `Bearer  ${key}`),
  }),
  ...group([415], {
    'another type': type('application/xml'),
    'like JSON': type('application/vnd.api+json'),
    'JSON with more': type('application/jsonp'),
    text: type('text/plain'),
    'a form': type('multipart/form-data; boundary=x'),
    'Latin-1': type('application/json; charset=latin1'),
    gzip: onBody(['Content-Encoding', 'gzip']),
    'two encodings': onBody(['Content-Encoding', 'identity, gzip']),
  }),
  ...group([400], {
    'an unknown parameter': asked,
    'an empty key': keyed('""'),
    'a blank key': keyed('  '),
    'a long key': keyed('x'.repeat(256)),
    'a key that is no ASCII': keyed('caf\xe9'),
    'a key with a tab': keyed('a\tb'),
    'a value that is no text': request =>
      Object.keys(request.params).length > 0
        ? aimed(target => target.replace(/(\/v1\/\w+\/)[^?/]+/, '$1%ff'))(request)
        : undefined,
    'a limit twice': request =>
      request.id.startsWith('list')
        ? { ...request, target: request.target.replace(/\?.*/, '') + '?limit=1&limit=1' }
        : undefined,
  }),
  ...group([401], {
    'no key': authorize(),
    'a bare key': authorize(key => key),
    'another scheme': authorize(key => `Basic ${key}`),
    'two keys': authorize(key => `Bearer ${key}, Bearer ${key}`),
    'two headers': authorize(
      key => `Bearer ${key}`,
      key => `Bearer ${key}`,
    ),
    'a longer key': authorize(key => `Bearer ${key}x`),
    'a shorter key': authorize(key => `Bearer ${key.slice(0, -1)}`),
    'a key in capitals': authorize(key => `Bearer ${key.toUpperCase()}`),
    'a key that is wrong': authorize(
      key => `Bearer ${key.slice(0, -1)}${key.endsWith('a') ? 'b' : 'a'}`,
    ),
    'a key as a byte more': authorize(key => `Bearer ${key}\xa0`),
    'SQL for a key': authorize(() => "Bearer ' or 1=1 --"),
    'a key in the query': (request, key) =>
      aimed(target => `${target}${target.includes('?') ? '&' : '?'}key=${key}`)(request),
  }),
  ...group([404, 405], {
    'a slash more': aimed(target => target.replace(/(?=\?|$)/, '/')),
    'two slashes': aimed(target => target.replace('/v1/', '/v1//')),
    capitals: aimed(target => target.replace('/v1/', '/V1/')),
    'a parameter of the path': aimed(target => target.replace('/v1/', '/v1;x/')),
    PUT: method('PUT'),
    PATCH: method('PATCH'),
    OPTIONS: method('OPTIONS'),
    TRACE: method('TRACE'),
  }),
]

/** Returns true if the answer repeats the id that the caller sent. */
export function takesClaimedId(text: string): boolean {
  return text.includes(CLAIMED_ID)
}

function isJson({ headers }: ApiRequest): boolean {
  return headers.some(([name, value]) => name === 'Content-Type' && value === 'application/json')
}

function replace({ headers }: ApiRequest, name: string, value: string): [string, string][] {
  return [...headers.filter(([other]) => other !== name), [name, value]]
}
