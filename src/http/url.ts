import { unknownName, type Issue } from './rules.ts'
import type { ObjectSchema } from './validation.ts'

/** An error lists no more issues, and a comparison of each name takes time. */
const MAX_UNKNOWN = 20

/**
 * Returns the path of a request's URL as sent. Does not parse the URL, which can be invalid: its
 * host is the Host header.
 */
export function toPathname(url: string): string {
  const start = url.indexOf('/', 8)
  const end = url.indexOf('?', start)
  return end < 0 ? url.slice(start) : url.slice(start, end)
}

/** Returns true for paths of requests of programs and of the dashboard. They never serve a page. */
export function isForPrograms(pathname: string): boolean {
  return /^\/(v1|api|ntfy|ping|in|mcp)(\/|$)/.test(pathname)
}

/** Decoded values by name, and the issues with those that are left out. */
export interface DecodedValues {
  values: Record<string, unknown>
  issues: readonly Issue[]
}

/** Returns the decoded path parameters (`:name`) of `route`. */
export function readParams(route: string, pathname: string): DecodedValues {
  const parts = pathname.split('/')
  const values: Record<string, string> = {}
  const issues: Issue[] = []
  for (const [place, part] of route.split('/').entries()) {
    if (!part.startsWith(':')) continue
    const name = part.slice(1)
    const value = decode(parts[place] ?? '')
    values[name] = value ?? ''
    if (value === undefined) issues.push(notEncoded(name))
  }
  return { values, issues }
}

/**
 * Returns the decoded query parameters. Those that `properties` lacks are issues: a filter that is
 * ignored would answer with everything.
 */
export function readQuery(
  properties: Readonly<ObjectSchema['properties']>,
  url: string,
): DecodedValues {
  if (!url.includes('?')) return { values: {}, issues: [] }
  const query = splitQuery(url)
  const values: Record<string, unknown> = {}
  const known = Object.keys(properties)
  const issues: Issue[] = [...query.keys()]
    .filter(name => name !== '' && !known.includes(name))
    .slice(0, MAX_UNKNOWN)
    .map(name => ({ path: [name], ...unknownName(name, known) }))
  for (const [name, { type }] of Object.entries(properties)) {
    const [given, ...others] = query.get(name) ?? []
    if (given === undefined) continue
    const text = decode(given)
    if (others.length > 0) {
      issues.push({ path: [name], code: 'invalid_value', message: 'Must be given once' })
    } else if (text === undefined) issues.push(notEncoded(name))
    else values[name] = type === 'integer' ? toInteger(text) : text
  }
  return { values, issues }
}

/** Returns the encoded values of each name. URLSearchParams would hide invalid percent-encoding. */
function splitQuery(url: string): Map<string, string[]> {
  const query = new Map<string, string[]>()
  for (const pair of url.slice(url.indexOf('?') + 1).split('&')) {
    const [name = '', ...value] = pair.replaceAll('+', ' ').split('=')
    const key = decode(name) ?? name
    const values = query.get(key) ?? []
    query.set(key, values)
    values.push(value.join('='))
  }
  return query
}

/** Decodes percent-encoded UTF-8. Returns undefined if it is invalid. */
function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

function notEncoded(name: string): Issue {
  return { path: [name], code: 'invalid_encoding', message: 'Must be percent-encoded UTF-8' }
}

function toInteger(text: string): unknown {
  return /^-?\d{1,30}$/.test(text) ? Number(text) : text
}
