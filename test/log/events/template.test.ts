import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { fillTemplate, findTemplateProblem } from '../../../src/log/events/template.ts'

/** The data of an event: everything that a place of the templates below can name. */
const toData = (title: string, value: unknown) => ({
  ...{ title, description: null, tags: [title], metadata: { plan: value, 'a.b': { c: 1 } } },
  project: { name: 'Shop' },
})
type Data = ReturnType<typeof toData>

const PLACES: Record<string, (data: Data) => unknown> = {
  title: data => data.title,
  description: () => null,
  url: () => null,
  tags: data => data.tags,
  'tags.0': data => data.tags[0],
  'tags.length': () => null,
  'title.length': () => null,
  metadata: data => data.metadata,
  'metadata.plan': data => data.metadata.plan,
  'metadata.a.b.c': () => 1,
  'metadata.constructor': () => null,
  'project.name': () => 'Shop',
}

/** A text of a template: what it is sent as. */
interface Piece {
  text: string
  fill(data: Data): string
  whole?: (data: Data) => unknown
}
const literal = fc
  .oneof(fc.string({ unit: 'binary' }), fc.constantFrom('"', '\\', '","x":"', '{', '}}', '\u2028'))
  .filter(text => text !== '' && !text.includes('{{'))
  .map((text): Piece => ({ text, fill: () => text }))
const place = fc.constantFrom(...Object.entries(PLACES)).map(([path, read]): Piece => {
  const fill = (data: Data) => {
    const value = read(data)
    return value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value)
  }
  return { text: `{{ ${path} }}`, fill, whole: read }
})
const text = fc
  .array(fc.oneof(literal, place), { maxLength: 4 })
  // Two literals could make a place together.
  .filter(pieces => pieces.every((one, at) => one.whole !== undefined || !pieces[at + 1]))
const { template } = fc.letrec<{ template: unknown; value: unknown }>(tie => ({
  template: fc.oneof(fc.array(tie('value')), fc.dictionary(fc.string(), tie('value'))),
  value: fc.oneof(
    { maxDepth: 3 },
    text.map(pieces => ({ pieces })),
    fc.constantFrom(1, true, null),
    tie('template'),
  ),
}))

/** Returns the template with each text replaced. */
function replace(value: unknown, toText: (pieces: Piece[]) => unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(one => replace(one, toText))
  const pieces = (value as { pieces?: unknown }).pieces
  if (Array.isArray(pieces) && pieces.every(one => 'fill' in one)) return toText(pieces)
  return Object.fromEntries(
    Object.entries(value).map(([name, one]) => [name, replace(one, toText)]),
  )
}

test('delivery: any template with any event keeps its structure, and only its places change', () => {
  fc.assert(
    fc.property(template, fc.string({ unit: 'binary' }), fc.jsonValue(), (made, title, value) => {
      const data = toData(title, value)
      const written = JSON.stringify(replace(made, pieces => pieces.map(one => one.text).join('')))
      const expected = replace(made, pieces => {
        const [only, ...others] = pieces
        if (only?.whole && others.length === 0) return only.whole(data)
        return pieces.map(one => one.fill(data)).join('')
      })
      expect(findTemplateProblem(written)).toBeUndefined()
      const filled = JSON.stringify(fillTemplate(written, JSON.stringify(data)))
      expect(filled).toBe(JSON.stringify(expected))
    }),
  )
})

test('contract §2 numbers of a template and of metadata are sent as they were written', () => {
  const data = '{"metadata":{"price":1.10,"id":12345678901234567890}}'
  const filled = fillTemplate('{"a":"{{metadata.price}}","b":"{{metadata.id}} €","c":2.50}', data)
  expect(JSON.stringify(filled)).toBe('{"a":1.10,"b":"12345678901234567890 €","c":2.50}')
})

test.each([
  ['a place outside of quotes', '{"a": {{title}}}', 'Must be JSON'],
  ['a text', '"{{title}}"', 'Must be a JSON object or array'],
  ['an unknown field', '{"a":"{{titel}}"}', '{{titel}} is no field of an event'],
  ['a name of all objects', '{"a":["{{title}} {{constructor}}"]}', '{{constructor}} is no field'],
  ['too many bytes', `{"a":"${'€'.repeat(2800)}"}`, 'at most 8,192 bytes'],
])('a template with %s is refused', (_, written, problem) => {
  expect(findTemplateProblem(written)).toContain(problem)
})

test('a template may be as deep as it is long', () => {
  const deep = `${'['.repeat(4000)}"{{title}}"${']'.repeat(4000)}`
  expect(findTemplateProblem(deep)).toBeUndefined()
  expect(JSON.stringify(fillTemplate(deep, '{"title":1}'))).toBe(deep.replace('"{{title}}"', '1'))
})

test('a body ends at 1 MiB, however often a place repeats', () => {
  const data = JSON.stringify({ metadata: { text: '"'.repeat(200_000) } })
  expect(JSON.stringify(fillTemplate('["{{metadata}}"]', data))).toHaveLength(400_013)
  expect(() => fillTemplate(`["${'{{metadata}}'.repeat(600)}"]`, data)).toThrow('1 MiB')
})
