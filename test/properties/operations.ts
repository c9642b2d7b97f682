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
  maxProperties?: number
  propertyNames?: Schema
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

/** An operation of the served document, with all that the generators need. */
export interface Operation {
  id: string
  method: string
  path: string
  parameters: Parameter[]
  /** The schemas of the body by content type; empty without a body. */
  bodies: [type: string, schema: Schema][]
}

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
      parameters: resolve(document, operation.parameters ?? []) as Parameter[],
      bodies: Object.entries<{ schema: Schema }>(operation.requestBody?.content ?? {}).map(
        ([type, { schema }]) => [type, resolve(document, schema) as Schema],
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
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [key, resolve(document, item)]),
  )
}

/** Returns the types of a schema, which has one or a list. */
export function typesOf({ type }: Schema): string[] {
  return type === undefined ? [] : [type].flat()
}
