import { createValidator, type ObjectSchema, type SchemaOf } from './validation.ts'
import { decode, notEncoded } from './params.ts'
import type { Issue } from './rules.ts'

/** Reads a URL's query by `schema`: names that it does not know are ignored, as in bodies. */
export function createQueryReader<Value>(
  schema: ObjectSchema & SchemaOf<Value>,
): (url: string) => Value {
  const validator = createValidator<Value>(schema)
  const names = Object.keys(schema.properties)
  return url => {
    const query = toQuery(url)
    const value: Record<string, unknown> = {}
    const issues: Issue[] = []
    for (const name of names) {
      const [given, ...others] = query.get(name) ?? []
      if (given === undefined) continue
      const text = decode(given)
      if (others.length > 0) {
        issues.push({ path: [name], code: 'invalid_value', message: 'Must be given once' })
      } else if (text === undefined) issues.push(notEncoded(name))
      else value[name] = schema.properties[name]?.type === 'integer' ? toInteger(text) : text
    }
    return validator.parse(value, issues)
  }
}

/** The values of each name, still encoded: URLSearchParams would not tell what it cannot decode. */
function toQuery(url: string): Map<string, string[]> {
  const query = new Map<string, string[]>()
  const start = url.indexOf('?')
  for (const pair of start < 0 ? [] : url.slice(start + 1).split('&')) {
    const [name = '', ...value] = pair.replaceAll('+', ' ').split('=')
    const key = decode(name)
    if (key === undefined) continue
    const values = query.get(key) ?? []
    query.set(key, values)
    values.push(value.join('='))
  }
  return query
}

function toInteger(text: string): unknown {
  return /^-?\d{1,30}$/.test(text) ? Number(text) : text
}
