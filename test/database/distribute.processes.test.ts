import { expect, test } from 'bun:test'
import { parse } from '@babel/parser'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { DISTRIBUTED } from '../../src/database/distribute.ts'
import { FUNCTIONS, MIGRATIONS } from '../../src/database/sql-files.ts'

const ROOT = resolve(import.meta.dir, '../..')
const PLACE = /\b(?:from|join|update|using|insert\s+into)\s+(\w+)\b(?!\s*\()/gi
/** Citus reads the projects of this join first, because they are few and no lateral join. */
const PLANNED = new Set(['channels_with_retention'])

const schema = [...MIGRATIONS, ...FUNCTIONS.files]
  .map(({ text }) => text.replace(/--.*/g, ''))
  .join('\n')
const distributed = new Set(DISTRIBUTED)
const coordinator = new Set(
  [...schema.matchAll(/^create (?:unlogged )?table (?:if not exists )?(\w+)/gm)]
    .map(match => match[1] ?? '')
    .filter(name => !distributed.has(name)),
)
/** The last body of each function. */
const functions = new Map(
  [
    ...schema.matchAll(
      /^create (?:or replace )?function (\w+)\s*\((?:(?!^create )[\s\S])*?\$\$([\s\S]*?)\$\$;/gm,
    ),
  ].map(([, name = '', body = '']) => [name, body]),
)
/** Functions that read tables of the coordinator, which the nodes do not have. */
const local = findLocalFunctions()

function findLocalFunctions(): ReadonlySet<string> {
  const found = new Set<string>()
  for (let size = -1; size < found.size;) {
    size = found.size
    for (const [name, body] of functions) {
      if (listTables(body).some(table => coordinator.has(table)) || calls(body, found)) {
        found.add(name)
      }
    }
  }
  return found
}

function listTables(text: string): string[] {
  return [...text.matchAll(PLACE)].map(match => match[1]?.toLowerCase() ?? '')
}

function calls(text: string, names: ReadonlySet<string>): boolean {
  return [...text.matchAll(/\b(\w+)\s*\(/g)].some(match => names.has(match[1] ?? ''))
}

/** Splits a statement into its materialized CTEs, which Citus plans one by one, and the rest. */
function toParts(statement: string): string[] {
  const parts: string[] = []
  let rest = statement
  for (;;) {
    const start = /\bas\s+materialized\s*\(/i.exec(rest)
    if (!start) return [...parts, rest]
    const from = start.index + start[0].length
    let depth = 1
    let end = from
    while (depth > 0 && end < rest.length) {
      if (rest[end] === '(') depth++
      if (rest[end] === ')') depth--
      end++
    }
    parts.push(...toParts(rest.slice(from, end - 1)))
    rest = rest.slice(0, start.index) + rest.slice(end)
  }
}

/** Returns the tables and functions of a part that Citus cannot read together; null if none. */
function findMixed(statement: string): string | null {
  const names = new Set(
    [...statement.matchAll(/\b(\w+)(?:\s*\([^()]*\))?\s+as\s+(?:materialized\s*)?\(/gi)].map(
      match => match[1]?.toLowerCase() ?? '',
    ),
  )
  for (const part of toParts(statement.replace(/--.*/g, ''))) {
    const tables = listTables(part).filter(table => !names.has(table))
    const ofNodes = tables.find(table => distributed.has(table))
    const ofCoordinator =
      tables.find(table => coordinator.has(table)) ??
      [...local].find(name => calls(part, new Set([name])))
    if (ofNodes && ofCoordinator) return `${ofNodes} with ${ofCoordinator}`
  }
  return null
}

/** A node of Babel's syntax tree. */
interface Node {
  type: string
  [field: string]: unknown
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'

function* listNodes(value: unknown): Generator<Node> {
  if (Array.isArray(value)) for (const one of value) yield* listNodes(one)
  if (!isNode(value)) return
  yield value
  for (const [field, child] of Object.entries(value)) {
    if (field !== 'loc' && field !== 'tokens' && field !== 'comments') yield* listNodes(child)
  }
}

/** The templates of a file. Fragments are also in the statement that contains them. */
function listTemplates(root: unknown): { line: number; text: string }[] {
  return [...listNodes(root)]
    .filter(({ type }) => type === 'TemplateLiteral')
    .map(node => ({
      line: (node['loc'] as { start: { line: number } }).start.line,
      text: toText(node),
    }))
}

/** A template with its fragments in place. Other values are parameters. */
function toText(template: Node): string {
  const quasis = template['quasis'] as { value: { raw: string } }[]
  const values = template['expressions'] as unknown[]
  return quasis.map(({ value }, at) => value.raw + toFragment(values[at])).join('')
}

function toFragment(value: unknown): string {
  if (!isNode(value)) return ''
  if (value.type === 'TaggedTemplateExpression') return toText(value['quasi'] as Node)
  if (value.type === 'ConditionalExpression')
    return `${toFragment(value['consequent'])} ${toFragment(value['alternate'])}`
  if (value.type === 'CallExpression') {
    const { name } = value['callee'] as { name?: string }
    return name === undefined ? ' $1 ' : (fragments.get(name) ?? ' $1 ')
  }
  return ' $1 '
}

const roots = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.ts') && !/^dashboard\//.test(name))
  .map(name => {
    const source = readFileSync(join(ROOT, 'src', name), 'utf8')
    return {
      name,
      root: parse(source, { sourceType: 'module', plugins: ['typescript'] }) as unknown,
    }
  })
/** The templates that functions return, by the names of the functions. */
const fragments = new Map<string, string>()
for (const { root } of roots) {
  for (const node of listNodes(root)) {
    if (node.type !== 'FunctionDeclaration') continue
    const { name } = node['id'] as { name: string }
    const { body } = node['body'] as { body: Node[] }
    for (const one of body) {
      const returned = one.type === 'ReturnStatement' ? one['argument'] : undefined
      if (isNode(returned) && returned.type === 'TaggedTemplateExpression')
        fragments.set(name, toText(returned['quasi'] as Node))
    }
  }
}

test('no statement of src reads tables of the nodes together with those of the coordinator', () => {
  expect(roots.length).toBeGreaterThan(200)
  const found = roots.flatMap(({ name, root }) =>
    listTemplates(root).flatMap(({ line, text }) => {
      const mixed = findMixed(text)
      return mixed === null ? [] : [`${name}:${line} ${mixed}`]
    }),
  )
  expect(found).toEqual([])
})

test('no statement of a function reads tables of the nodes together with those of the coordinator', () => {
  expect(functions.size).toBeGreaterThan(100)
  const found = [...functions].flatMap(([name, body]) =>
    body.split(';').flatMap(statement => {
      const mixed = PLANNED.has(name) ? null : findMixed(statement)
      return mixed === null ? [] : [`${name} ${mixed}`]
    }),
  )
  expect(found).toEqual([])
})

test.each([
  ['select from events e join projects p on p.id = e.project_id', 'events with projects'],
  [
    'with page as materialized (select e.id from events e) select from page join projects p on true',
    null,
  ],
  ['select from projects p cross join lateral log_of(p.id) l', null],
  ['select retention_cutoff(c.project_id, c.id) from channels c', 'channels with retention_cutoff'],
])('%s', (statement, mixed) => {
  expect(findMixed(statement)).toBe(mixed)
})
