import type { Static, TObject } from '@sinclair/typebox'
import { Invalid, createValidator } from './validation.ts'
import type { Issue } from './rules.ts'

/** Reads a URL's query by `schema`: names that it does not know are ignored, as in bodies. */
export function createQueryReader<Schema extends TObject>(
  schema: Schema,
): (url: string) => Static<Schema> {
  const validator = createValidator(schema)
  const names = Object.keys(schema.properties)
  return url => {
    const start = url.indexOf('?')
    const query = new URLSearchParams(start < 0 ? '' : url.slice(start))
    const value: Record<string, unknown> = {}
    const issues: Issue[] = []
    for (const name of names) {
      const given = query.getAll(name)
      if (given.length > 1) {
        issues.push({ path: [name], code: 'invalid_value', message: 'Must be given once' })
      } else if (given[0] !== undefined) {
        value[name] = schema.properties[name]?.type === 'integer' ? toInteger(given[0]) : given[0]
      }
    }
    if (issues.length > 0) throw new Invalid(issues)
    return validator.parse(value)
  }
}

function toInteger(text: string): unknown {
  return /^-?\d{1,16}$/.test(text) ? Number(text) : text
}
