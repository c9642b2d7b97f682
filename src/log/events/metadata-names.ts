import { isRawNumber, parseExact } from '../../http/exact-json.ts'

const MAX_DEPTH = 5
const MAX_NAMES = 1_000
const MAX_VALUE = 100

/** A path in the metadata, or a path with a value, and how often it was found. */
interface MetadataName {
  value: string
  count: number
}

/**
 * Collects what a `meta:` term can have, from the JSON of some metadata: paths like `order.plan=`,
 * or with a `=` in the wanted text the values of that path, like `order.plan=pro`. It leaves out
 * what a search cannot express: empty names, names with a dot or `=`, and long values.
 */
export function collectMetadata(texts: readonly string[], wanted: string): MetadataName[] {
  const counts = new Map<string, number>()
  const at = wanted.indexOf('=')
  const path = at < 0 ? undefined : wanted.slice(0, at)
  const add = (name: string) => {
    const known = counts.get(name)
    if (known !== undefined || counts.size < MAX_NAMES) counts.set(name, (known ?? 0) + 1)
  }
  const visit = (value: object, prefix: string, depth: number) => {
    for (const [name, one] of Object.entries(value)) {
      if (name === '' || /[.=]/.test(name)) continue
      const full = `${prefix}${name}`
      if (typeof one === 'object' && one !== null && !isRawNumber(one)) {
        if (depth < MAX_DEPTH) visit(one, `${full}.`, depth + 1)
      } else if (path === undefined) add(`${full}=`)
      else if (full === path && isExpressible(one)) add(`${full}=${toText(one)}`)
    }
  }
  for (const text of texts) {
    // The column holds objects alone.
    visit(parseExact(text).value as object, '', 1)
  }
  return [...counts].map(([value, count]) => ({ value, count }))
}

/** Returns whether a value can be searched for. */
function isExpressible(value: unknown): boolean {
  return value !== null && toText(value).length <= MAX_VALUE && toText(value).trim() !== ''
}

/** Returns a value as a search writes it. Numbers have the digits that were sent. */
function toText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
