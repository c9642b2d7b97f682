import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseSource } from './source-tree.ts'

const src = fileURLToPath(new URL('../../src/', import.meta.url))

/** The positions of sentences among the arguments of the functions that take them. */
const TAKERS: Readonly<Record<string, readonly number[]>> = {
  Fault: [1],
  issue: [1],
  invalidField: [2],
  postpone: [1],
  toRefusal: [0],
  toExceeded: [1, 3],
}
/** The fields that hold sentences, each with the fields that one of must stand beside it. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  message: ['code', 'error'],
  reason: ['kind', 'id'],
}
/** Functions and constants whose texts pass through other names before they are sent. */
const GIVERS = [
  'toEgressMessage',
  'findPresetProblem',
  'hopeless',
  'SECRETS_LOST',
  'WITHHELD_REASONS',
]
/** The code whose errors no page shows: programs get them, and people who run commands. */
const SKIPPED = [
  /^(?:archive|backup|cli|config|db\/(?:copy|primary)|embedded|feed|sbom|secrets)\b/,
  /^(?:accounts\/admission|demo\/shop|events\/fail-over-check|identities\/identify|keys\/guard)/,
  /^(?:limits\/idempotency|openid\/(?:callback|logout)|workers)/,
]
/** A template takes up to this many sentences of another part. More stay a placeholder. */
const MAX_VARIANTS = 6
const MAX_DEPTH = 12

/** A node of Babel's syntax tree. */
interface Node {
  type: string
  [field: string]: unknown
}

/** The functions, the constants and the calls of one file, by their names. */
interface Source {
  name: string
  root: Node
  named: Map<string, Node[]>
  exported: Set<string>
  calls: Map<string, Node[]>
}

/**
 * Lists the sentences that the server sends to pages, with the names of their variables, as in
 * `Try again in {seconds} s.` `unknown` names the places whose sentences cannot be read.
 */
export function listServerSentences(): { sentences: string[]; unknown: string[] } {
  const sources = readdirSync(src, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts') && !name.startsWith('dashboard'))
    .sort()
    .map(name => readSource(name, readFileSync(join(src, name), 'utf8')))
  return findSentences(sources)
}

/** The sentences of one file with this text. */
export function listSentencesOf(text: string): { sentences: string[]; unknown: string[] } {
  return findSentences([readSource('file.ts', text)])
}

function readSource(name: string, text: string): Source {
  const root = parseSource(name, text) as Node
  const source: Source = { name, root, named: new Map(), exported: new Set(), calls: new Map() }
  visit(root, node => {
    const { id, callee } = node
    const value = node.type === 'FunctionDeclaration' ? node : node['init']
    if (isNode(id) && isNode(value)) add(source.named, toName(id), value)
    for (const one of listExported(node)) source.exported.add(one)
    if (callee) add(source.calls, toName(callee), node)
  })
  return source
}

function add(lists: Map<string, Node[]>, name: string, node: Node): void {
  lists.set(name, [...(lists.get(name) ?? []), node])
}

function findSentences(sources: readonly Source[]): { sentences: string[]; unknown: string[] } {
  const sentences = new Set<string>()
  const unknown = new Set<string>()
  for (const source of sources.filter(({ name }) => !SKIPPED.some(one => one.test(name)))) {
    visit(source.root, (node, parents) => {
      for (const value of listShown(node)) {
        if (isPassedOn(value)) continue
        const found = resolve(value, { source, parents, depth: 0 })
        if (!found) unknown.add(`${source.name} ${toName(value['callee'] ?? value)}`)
        found?.forEach(one => sentences.add(one))
      }
    })
  }
  for (const source of sources)
    for (const name of GIVERS.filter(one => source.named.has(one)))
      resolve({ type: 'Identifier', name }, { source, parents: [], depth: 0 })?.forEach(one =>
        sentences.add(one),
      )
  return { sentences: [...sentences].sort(), unknown: [...unknown].sort() }

  interface Place {
    source: Source
    parents: readonly Node[]
    depth: number
  }

  /** The texts that an expression can have; undefined if they cannot be told. */
  function resolve(node: Node, { depth, ...place }: Place): string[] | undefined {
    if (depth > MAX_DEPTH) return undefined
    const inner = { ...place, depth: depth + 1 }
    const all = (some: readonly unknown[], source = place.source) => {
      const found = some
        .filter(isNode)
        .filter(one => one.type !== 'NullLiteral' && toName(one) !== 'undefined')
        .map(one => resolve(one, { ...inner, source }))
      return found.length > 0 && found.every(one => one !== undefined) ? found.flat() : undefined
    }
    switch (node.type) {
      case 'StringLiteral':
        return [String(node['value'])]
      case 'TemplateLiteral':
        return fill(node, inner)
      case 'ConditionalExpression':
        return all([node['consequent'], node['alternate']])
      case 'LogicalExpression':
        return all([node['left'], node['right']])
      case 'ObjectExpression':
        return all((node['properties'] as Node[]).map(({ value }) => value))
      case 'TSAsExpression':
      case 'TSSatisfiesExpression':
        return all([node['expression']])
      case 'MemberExpression':
        return all([node['object']])
      case 'CallExpression':
      case 'Identifier': {
        const name = toName(node['callee'] ?? node)
        if (findOwner(name, inner)) return resolveParameter(name, inner)
        const here = place.source.named.has(name)
        const source = here ? place.source : sources.find(({ exported }) => exported.has(name))
        const found = source?.named.get(name) ?? []
        const texts = found.flatMap(one =>
          one.type === 'FunctionDeclaration' ? listReturned(one) : one,
        )
        return all(texts, source)
      }
      default:
        return undefined
    }
  }

  /** The function whose parameter `name` is. */
  function findOwner(name: string, { parents }: Place): Node | undefined {
    return parents.findLast(one => listParameters(one).includes(name))
  }

  /** The texts of a parameter, from all calls of its function in the file. */
  function resolveParameter(name: string, place: Place): string[] | undefined {
    const owner = findOwner(name, place)
    const at = owner ? listParameters(owner).indexOf(name) : -1
    const own = owner && (owner['id'] ?? place.parents[place.parents.indexOf(owner) - 1]?.['id'])
    const calls = place.source.calls.get(toName(own)) ?? []
    const found = calls.map(one => {
      const argument = (one['arguments'] as Node[])[at]
      return argument && resolve(argument, place)
    })
    return found.length > 0 && found.every(one => one !== undefined) ? found.flat() : undefined
  }

  /** The texts of a template. Its other parts are placeholders with the names of their values. */
  function fill(node: Node, place: Place): string[] {
    const parts = (node['quasis'] as { value: { cooked: string } }[]).map(one => one.value.cooked)
    return (node['expressions'] as Node[]).reduce(
      (texts, value, at) => {
        const isPart = parts.length === 2 || !findOwner(toName(value), place)
        const variants = isPart ? resolve(value, place) : undefined
        const isShort = variants !== undefined && variants.length <= MAX_VARIANTS
        if (!isShort) variants?.forEach(one => sentences.add(one))
        const filled = isShort ? variants : [`{${toVariable(value)}}`]
        return texts.flatMap(text => filled.map(one => text + one + parts[at + 1]))
      },
      [parts[0] ?? ''],
    )
  }
}

/** The sentences among the parts of a node. */
function listShown({ type, ...node }: Node): Node[] {
  if (type === 'ObjectExpression') {
    const fields = new Map((node['properties'] as Node[]).map(one => [toName(one['key']), one]))
    return Object.entries(FIELDS).flatMap(([name, beside]) => {
      const value = fields.get(name)?.['value']
      return isNode(value) && beside.some(one => fields.has(one)) ? [value] : []
    })
  }
  const positions = TAKERS[toName(node['callee'])] ?? []
  return positions.map(at => (node['arguments'] as Node[])[at]).filter(isNode)
}

/** Returns whether a sentence comes from an object that is listed itself, or is a schema. */
function isPassedOn({ type, ...node }: Node): boolean {
  const { object, property, callee } = node as Record<string, Node | undefined>
  if (type === 'MemberExpression') return !node['computed'] && toName(property) in FIELDS
  return (
    type === 'CallExpression' &&
    ['Type', 'Nullable'].includes(toName(object ?? callee?.['object'] ?? callee))
  )
}

function listReturned(declaration: Node): unknown[] {
  const found: unknown[] = []
  visit(declaration['body'], ({ type, argument }) => {
    if (type === 'ReturnStatement' && argument) found.push(argument)
  })
  return found
}

/** The names that a node exports. */
function listExported({ type, declaration }: Node): string[] {
  if (type !== 'ExportNamedDeclaration' || !isNode(declaration)) return []
  const { id, declarations = [] } = declaration
  return [id, ...(declarations as Node[]).map(one => one['id'])].map(toName)
}

function listParameters(node: Node): string[] {
  return Array.isArray(node['params']) ? node['params'].map(toName) : []
}

/** The name of the value in a template, such as `max` for `count.max.toLocaleString('en')`. */
function toVariable(node: Node): string {
  const { type, object, property, callee } = node
  if (type === 'CallExpression') {
    const first = (node['arguments'] as Node[])[0]
    const owner = (callee as Node)['object'] ?? first
    return toVariable(owner as Node)
  }
  if (type === 'MemberExpression') {
    const isComputed = node['computed'] && (property as Node).type !== 'StringLiteral'
    return toVariable((isComputed ? object : property) as Node)
  }
  if (type === 'BinaryExpression') return toVariable(node['left'] as Node)
  return toName(node) || String(node['value'] ?? type)
}

/** Calls `each` for every node, with those that it stands in. */
function visit(
  node: unknown,
  each: (node: Node, parents: readonly Node[]) => void,
  parents: Node[] = [],
): void {
  if (Array.isArray(node)) return node.forEach(one => visit(one, each, parents))
  if (!isNode(node)) return
  each(node, parents)
  parents.push(node)
  for (const field in node) if (field !== 'loc') visit(node[field], each, parents)
  parents.pop()
}

function toName(node: unknown): string {
  return isNode(node) ? String(node['name'] ?? '') : ''
}

function isNode(node: unknown): node is Node {
  return typeof node === 'object' && node !== null && 'type' in node
}
