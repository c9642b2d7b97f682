import { NOT_BLANK } from '../../http/rules.ts'
import { resolve, toName, type Document, type Parameter, type Schema } from './document.ts'
import type { Reference } from './example.ts'
import { inline, join, markup, toAnchor, type Markup, type Piece } from './html.ts'

/** A field, or a parameter with its place: path, query or header. */
interface Row extends Omit<Parameter, 'in'> {
  place?: string
}

const MAX_EXAMPLE = 72
const MAX_PATTERN = 32
const FORMATS: Record<string, string> = { 'date-time': 'ISO 8601', uuid: 'UUID' }

/** Renders the fields of an object. Fields of nested objects are `outer.inner`. */
export function fieldTable({ document, examples }: Reference, schema: Schema): Markup {
  return table('Field', listFields(document, schema), examples)
}

export function parameterTable({ examples }: Reference, parameters: readonly Parameter[]): Markup {
  const rows = parameters.map(({ in: place, ...parameter }) => ({ place, ...parameter }))
  return table('Parameter', rows, examples)
}

/** Returns the type of a schema in one line, with links to named schemas. */
export function toShape(schema: Schema): Piece {
  const { $ref, const: constant, anyOf, items, properties, required, type } = schema
  if ($ref !== undefined) return schemaLink(toName($ref))
  if (constant !== undefined) return JSON.stringify(constant)
  if (anyOf !== undefined) return join(anyOf.map(toShape), ' | ')
  if (items !== undefined)
    return items.anyOf ? ['(', toShape(items), ')[]'] : [toShape(items), '[]']
  if (properties !== undefined) {
    const fields = Object.entries(properties).map(([name, field]) => [
      required?.includes(name) ? `${name}: ` : `${name}?: `,
      toShape(field),
    ])
    return ['{ ', join(fields, ', '), ' }']
  }
  return Array.isArray(type) ? type.join(' | ') : (type ?? 'any')
}

function schemaLink(name: string): Markup {
  return markup`<a href="#${toAnchor('schema', name)}">${name}</a>`
}

/** Returns the bounds of a value in words. */
export function toBounds(schema: Schema): string[] {
  const { format, pattern, items, enum: values, default: standard } = schema
  const isShort = pattern !== undefined && pattern.length <= MAX_PATTERN && pattern !== NOT_BLANK
  const each =
    items && items.$ref === undefined ? toBounds(items).map(bound => `each ${bound}`) : []
  return [
    range(schema.minLength, schema.maxLength, 'character'),
    range(schema.minimum, schema.maximum, ''),
    range(schema.minItems, schema.maxItems, 'item'),
    range(undefined, schema.maxProperties, 'key'),
    format !== undefined && FORMATS[format],
    isShort && `matches \`${pattern}\``,
    pattern === NOT_BLANK && 'not blank',
    values !== undefined && `one of ${values.map(value => `\`${value}\``).join(', ')}`,
    ...each,
    standard !== undefined && `default \`${JSON.stringify(standard)}\``,
  ].filter(bound => typeof bound === 'string')
}

function listFields(document: Document, schema: Schema, prefix = ''): Row[] {
  const { properties = {}, required = [] } = resolve(document, schema)
  return Object.entries(properties).flatMap(([name, field]) => {
    const path = prefix + name
    const row = { name: path, schema: field, required: required.includes(name) }
    if (field.properties) return [row, ...listFields(document, field, `${path}.`)]
    if (field.items?.properties) return [row, ...listFields(document, field.items, `${path}[].`)]
    return [row]
  })
}

function table(title: string, rows: readonly Row[], examples: Reference['examples']): Markup {
  return markup`<table class="fields">
<thead><tr><th scope="col">${title}</th><th scope="col">Description</th></tr></thead>
<tbody>${rows.map(row => tableRow(row, examples))}</tbody>
</table>`
}

function tableRow(
  { name, schema, required, place, description }: Row,
  examples: Reference['examples'],
): Markup {
  // The bounds of a nullable value are those of the value.
  const bounds = toBounds(schema.anyOf?.find(({ type }) => type !== 'null') ?? schema)
  const text = description ?? schema.description ?? schema.anyOf?.[0]?.description
  const example = toLine(schema, examples.get(name))
  return markup`<tr>
<th scope="row"><code>${name}</code>
<span class="hint">${toBriefShape(schema)}${place !== undefined && ` · ${place}`}</span>
${required && markup`<span class="required">required</span>`}</th>
<td>${text !== undefined && markup`<p>${inline(text)}</p>`}
${bounds.length > 0 && markup`<p class="hint">${inline(toSentence(bounds))}</p>`}
${example !== undefined && markup`<p class="hint">Example: <code>${example}</code></p>`}</td>
</tr>`
}

/** Returns the type without the fields, which have rows of their own. */
function toBriefShape(schema: Schema): Piece {
  if (schema.properties) return 'object'
  return schema.items?.properties ? 'object[]' : toShape(schema)
}

function toLine(schema: Schema, known: unknown): string | undefined {
  const value = schema.examples?.[0] ?? known
  if (value === undefined || value === schema.default || !isOfType(schema, value)) return undefined
  const line = JSON.stringify(value)
  return line.length <= MAX_EXAMPLE ? line : undefined
}

function isOfType(schema: Schema, value: unknown): boolean {
  if (schema.anyOf) return schema.anyOf.some(choice => isOfType(choice, value))
  const type = Array.isArray(value) ? 'array' : typeof value
  const expected = [schema.type ?? []].flat()
  return expected.includes(type) || (type === 'number' && expected.includes('integer'))
}

function range(min: number | undefined, max: number | undefined, unit: string): string | undefined {
  const low = min === undefined || (min === 0 && unit !== '') ? undefined : min
  // Every integer has this bound.
  const high = max === Number.MAX_SAFE_INTEGER ? undefined : max
  if (low === undefined && high === undefined) return undefined
  const words = unit === '' ? '' : ` ${unit}${(high ?? low) === 1 ? '' : 's'}`
  if (low === undefined) return `up to ${toNumber(high)}${words}`
  return high === undefined
    ? `at least ${toNumber(low)}${words}`
    : `${toNumber(low)} to ${toNumber(high)}${words}`
}

function toNumber(value: number | undefined): string {
  return value?.toLocaleString('en') ?? ''
}

function toSentence(parts: readonly string[]): string {
  const text = parts.join(' · ')
  return text.charAt(0).toUpperCase() + text.slice(1)
}
