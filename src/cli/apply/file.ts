import { Type, type Static, type TSchema } from '@sinclair/typebox'
import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  type Document,
  type Node,
} from 'yaml'
import { Email, Name } from '../../access/guard/schema.ts'
import { ProjectChange, RoleBody } from '../../access/organizations/schema.ts'
import { parseEmail } from '../../base/config/values.ts'
import { NewWebhook } from '../../delivery/webhooks/webhook-schema.ts'
import { Nullable } from '../../http/schema-parts.ts'
import { createValidator, InvalidRequest, type ObjectSchema } from '../../http/validation.ts'
import { ChannelName, toSlug } from '../../log/channels/name.ts'
import { NewChannel } from '../../log/channels/schema.ts'

// The fields and their rules are those of the management API, except that names replace ids.
export type ChannelEntry = NewChannel

const WebhookEntry = Type.Object({
  ...Type.Omit(NewWebhook, ['viewId']).properties,
  name: Name,
  /** The names of environment variables with the values, so that the file has no secrets. */
  headers: Type.Optional(Type.Record(Type.String(), Type.String())),
  view: Type.Optional(Nullable(Type.String())),
  channels: Type.Optional(Nullable(Type.Array(ChannelName, { minItems: 1, maxItems: 100 }))),
})
export type WebhookEntry = Static<typeof WebhookEntry>

const ProjectEntry = Type.Object({
  ...ProjectChange.properties,
  name: Name,
  channels: Type.Optional(Type.Array(NewChannel)),
  webhooks: Type.Optional(Type.Array(WebhookEntry)),
})
export type ProjectEntry = Static<typeof ProjectEntry>

const MemberEntry = Type.Object({ email: Email, ...RoleBody.properties })
export type MemberEntry = Static<typeof MemberEntry>

/** The file of `tidings apply`. */
const StateFile = Type.Object({
  organization: Type.Optional(Name),
  members: Type.Optional(Type.Array(MemberEntry)),
  projects: Type.Optional(Type.Array(ProjectEntry)),
})
export type StateFile = Static<typeof StateFile>

const validator = createValidator(StateFile)

/** The file is invalid. The message has one line for each problem. */
class FileError extends Error {
  override readonly name = 'FileError'
}

interface Problem {
  path: readonly string[]
  message: string
}

/** Parses a file in YAML. Throws a `FileError` that names the lines of all problems. */
export function parseStateFile(text: string, fileName: string): StateFile {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const fail = (problems: readonly { line: number; message: string }[]): never => {
    throw new FileError(
      problems.map(({ line, message }) => `${fileName}:${line}: ${message}`).join('\n'),
    )
  }
  const broken = [...document.errors, ...document.warnings]
  if (broken.length > 0) {
    fail(broken.map(({ pos, message }) => ({ line: lines.linePos(pos[0]).line, message })))
  }
  const value = toValue(document)
  const problems = [
    ...findUnknownFields(document, document.contents, StateFile),
    ...findInvalidFields(value),
  ]
  const found = problems.length > 0 ? problems : findRepetitions(value as StateFile)
  if (found.length > 0) {
    fail(
      found.map(({ path, message }) => ({
        line: lines.linePos(findPosition(document, path)).line,
        message: path.length === 0 ? message : `${toField(path)}: ${message}`,
      })),
    )
  }
  return value as StateFile // The validator has checked it.
}

/** Throws a `FileError` for a file whose aliases expand to too much. */
function toValue(document: Document): unknown {
  try {
    return document.toJS() ?? {}
  } catch (error) {
    throw new FileError(error instanceof Error ? error.message : String(error))
  }
}

function findInvalidFields(value: unknown): Problem[] {
  try {
    validator.parse(value)
    return []
  } catch (error) {
    if (!(error instanceof InvalidRequest)) throw error
    return error.details
  }
}

/** Returns the fields that `schema` does not have, in `node` and in all of its parts. */
function findUnknownFields(
  document: Document,
  node: unknown,
  schema: TSchema,
  path: readonly string[] = [],
): Problem[] {
  const value = resolve(document, node)
  if (isSeq(value) && schema['items']) {
    return value.items.flatMap((item, index) =>
      findUnknownFields(document, item, schema['items'], [...path, String(index)]),
    )
  }
  if (!isMap(value) || !schema['properties']) return []
  const { properties } = schema as ObjectSchema
  return value.items.flatMap(({ key, value: part }) => {
    const name = isScalar(key) ? String(key.value) : String(key)
    const known = Object.hasOwn(properties, name) ? properties[name] : undefined
    if (known) return findUnknownFields(document, part, known, [...path, name])
    const names = Object.keys(properties).sort().join(', ')
    return [{ path: [...path, name], message: `Unknown field. Known here: ${names}.` }]
  })
}

/** Returns the entries that have the name of an earlier one in the same list. */
function findRepetitions({ members = [], projects = [] }: StateFile): Problem[] {
  const inProjects = projects.flatMap(({ channels = [], webhooks = [] }, index) => {
    const path = ['projects', String(index)]
    return [
      ...repeated([...path, 'channels'], channels, ({ name }) => toSlug(name)),
      ...repeated([...path, 'webhooks'], webhooks, ({ name }) => name.trim()),
    ]
  })
  return [
    ...repeated(['members'], members, ({ email }) => parseEmail(email) ?? email),
    ...repeated(['projects'], projects, ({ name }) => name.trim()),
    ...inProjects,
  ]
}

function repeated<Entry>(
  path: readonly string[],
  entries: readonly Entry[],
  toKey: (entry: Entry) => string,
): Problem[] {
  const keys = entries.map(toKey)
  return keys.flatMap((key, index) =>
    keys.indexOf(key) < index
      ? [{ path: [...path, String(index)], message: `${JSON.stringify(key)} is there twice.` }]
      : [],
  )
}

/** Returns the offset of the deepest part of `path` that exists. */
function findPosition(document: Document, path: readonly string[]): number {
  let node = resolve(document, document.contents)
  let position = node?.range?.[0] ?? 0
  for (const segment of path) {
    let next: unknown
    if (isSeq(node)) next = node.items[Number(segment)]
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === segment)
      if (isScalar(pair?.key)) position = pair.key.range?.[0] ?? position
      next = pair?.value
    } else {
      position = (next as Node | undefined)?.range?.[0] ?? position
    }
    node = resolve(document, next)
    if (!node) return position
  }
  return position
}

function resolve(document: Document, node: unknown): Node | undefined {
  return isAlias(node) ? node.resolve(document) : ((node ?? undefined) as Node | undefined)
}

/** Returns `projects[0].name` for `['projects', '0', 'name']`. */
function toField(path: readonly string[]): string {
  return path
    .map((part, index) => (/^\d+$/.test(part) ? `[${part}]` : index === 0 ? part : `.${part}`))
    .join('')
}
