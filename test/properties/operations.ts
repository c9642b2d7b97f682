import { NOT_BLANK } from '../../src/http/rules.ts'
import { NAME_PATTERN } from '../../src/log/channels/name.ts'

/** A JSON Schema of the document, with its references resolved. */
export interface Schema {
  type?: string | string[]
  format?: string
  pattern?: string
  enum?: unknown[]
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  maxItems?: number
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
}

export interface Parameter {
  name: string
  in: 'path' | 'query' | 'header'
  required: boolean
  schema: Schema
}

/**
 * Patterns of rules that the document states in words. Portable patterns cannot express them, so
 * the document has looser ones. The keys begin descriptions or patterns of the document.
 */
const INVISIBLE = '\\s\\p{Cc}\\p{Z}\\p{Default_Ignorable_Code_Point}\\u2800\\ufff9-\\ufffb'
const RULES: readonly [beginning: string, pattern: string][] = [
  ['Name of the channel', NAME_PATTERN],
  ['The first line', toTextPattern()],
  [NOT_BLANK, `[^${INVISIBLE}]`],
  ['^[\\x21-', '^(?!""$)[\\x21-\\x7e](?:[\\x20-\\x7e]*[\\x21-\\x7e])?$'],
]

/** The pattern of a text whose first line has a title beside its emoji. Needs the flag `u`. */
function toTextPattern(): string {
  const plain = `[^${INVISIBLE}\\p{Extended_Pictographic}\\p{Emoji_Component}]|[0-9#*](?!\\uFE0F)`
  return `^\\s*(?=\\S)(?=[^\\n]*(?:${plain}))[^\\n]{1,500}(?:\\n[^]{0,5000})?$`
}

/** Returns a schema with the pattern of its rule. */
function toStrict(schema: Schema & { description?: string }): Schema {
  const { description = '', pattern } = schema
  // The names of fields can be those of keywords.
  if (typeof pattern !== 'string') return schema
  const rule = RULES.find(([start]) => description.startsWith(start) || pattern.startsWith(start))
  return rule ? { ...schema, pattern: rule[1] } : schema
}

/** An operation of the served document, with all that the generators need. */
export interface Operation {
  id: string
  method: string
  path: string
  parameters: Parameter[]
  /** The schemas of the body by content type; empty without a body. */
  bodies: [type: string, schema: Schema][]
}

type Described = Parameter & { description?: string }

interface Document {
  paths: Record<string, Record<string, any>>
  components: { schemas: Record<string, Schema> }
}

/** Returns the operations of the document that the server at `url` serves. */
export async function readOperations(url: string): Promise<Operation[]> {
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as Document
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({
      id: operation.operationId,
      method: method.toUpperCase(),
      path,
      parameters: (operation.parameters ?? []).map((one: Described) => ({
        ...one,
        schema: resolve(document, { ...one.schema, description: one.description }),
      })),
      bodies: Object.entries<{ schema?: Schema }>(operation.requestBody?.content ?? {}).map(
        // A form has no schema. It is read as plain text, the first type.
        ([type, { schema }], _, all) => [
          type,
          resolve(document, schema ?? all[0]?.[1].schema) as Schema,
        ],
      ),
    })),
  )
}

function resolve(document: Document, value: unknown): unknown {
  if (Array.isArray(value)) return value.map(item => resolve(document, item))
  if (typeof value !== 'object' || value === null) return value
  if ('$ref' in value) {
    const name = String(value.$ref).replace('#/components/schemas/', '')
    return resolve(document, document.components.schemas[name])
  }
  return toStrict(
    Object.fromEntries(Object.entries(value).map(([key, item]) => [key, resolve(document, item)])),
  )
}

/** Returns the types of a schema, which has one or a list. */
export function typesOf({ type }: Schema): string[] {
  return type === undefined ? [] : [type].flat()
}
