import { toAnchor } from './html.ts'

/** The parts of an OpenAPI 3.1 document that the reference shows. */
export interface Document {
  info: { title: string; version: string; summary?: string; description?: string }
  servers?: { url: string }[]
  tags?: { name: string; description?: string }[]
  paths: Record<string, Record<string, OperationObject>>
  components?: { schemas?: Record<string, Schema> }
}

export interface Schema {
  $ref?: string
  type?: string | string[]
  format?: string
  description?: string
  const?: unknown
  enum?: unknown[]
  default?: unknown
  examples?: unknown[]
  anyOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  pattern?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  minItems?: number
  maxItems?: number
  maxProperties?: number
}

export interface Parameter {
  name: string
  in: string
  required?: boolean
  description?: string
  schema: Schema
}

export interface Reply {
  description: string
  headers?: Record<string, Header>
  content?: Record<string, { schema: Schema }>
}

interface Header {
  description?: string
  schema: Schema
}

interface OperationObject {
  operationId: string
  summary: string
  description?: string
  tags?: string[]
  security?: Record<string, string[]>[]
  parameters?: Parameter[]
  requestBody?: { content: Record<string, { schema: Schema; example?: unknown }> }
  responses: Record<string, Reply>
  /** The permission that an operation of /api takes. */
  'x-action'?: string
}

export interface Operation extends OperationObject {
  method: string
  path: string
}

/** Returns all operations in the order of the document. */
export function listOperations(document: Document): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      method: method.toUpperCase(),
      path,
    })),
  )
}

/** Returns the operations by their first tag, in the order of the document's tags. */
export function listGroups(document: Document, prefix: string) {
  const operations = listOperations(document)
  const tags = document.tags ?? []
  const names = new Set([...tags.map(({ name }) => name), ...operations.map(toTag)])
  return [...names].map(name => ({
    name,
    anchor: toAnchor(prefix, name.toLowerCase()),
    description: tags.find(tag => tag.name === name)?.description,
    operations: operations.filter(operation => toTag(operation) === name),
  }))
}

function toTag({ tags }: Operation): string {
  return tags?.[0] ?? 'Other'
}

/** Returns the scopes that a key needs for the operation. Any key will do when there are none. */
export function toScopes(operation: Operation): string[] {
  return [...new Set((operation.security ?? []).flatMap(schemes => Object.values(schemes).flat()))]
}

/** Returns the schema that `schema` refers to, else `schema` itself. */
export function resolve(document: Document, schema: Schema): Schema {
  if (schema.$ref === undefined) return schema
  return document.components?.schemas?.[toName(schema.$ref)] ?? {}
}

/** Returns the name in `#/components/schemas/Name`. */
export function toName(ref: string): string {
  return ref.slice(ref.lastIndexOf('/') + 1)
}

/** Returns the URL of the server, without a trailing slash. */
export function toBaseUrl(document: Document): string {
  return (document.servers?.[0]?.url ?? '').replace(/\/+$/, '')
}
