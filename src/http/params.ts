import { Type, type TSchema } from '@sinclair/typebox'
import type { Issue } from './rules.ts'
import { createValidator } from './validation.ts'

/** Reads the parameters (`:name`) of `path` from a request's path, by their schemas and in their order. */
export function createParamsReader(
  path: string,
  schemas: Readonly<Record<string, TSchema>>,
): (pathname: string) => string[] {
  const validator = createValidator(Type.Object({ ...schemas }))
  const places = path
    .split('/')
    .flatMap((part, place) => (part.startsWith(':') ? [{ name: part.slice(1), place }] : []))
  return pathname => {
    const parts = pathname.split('/')
    const values: Record<string, string> = {}
    const issues: Issue[] = []
    for (const { name, place } of places) {
      const value = decode(parts[place] ?? '')
      values[name] = value ?? ''
      if (value === undefined) issues.push(notEncoded(name))
    }
    validator.parse(values, issues)
    return Object.values(values)
  }
}

/** Percent-encoded UTF-8 as text, or undefined when it is none. */
export function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

export function notEncoded(name: string): Issue {
  return { path: [name], code: 'invalid_encoding', message: 'Must be percent-encoded UTF-8' }
}
