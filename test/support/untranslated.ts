import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseSource } from './source-tree.ts'

const app = fileURLToPath(new URL('../../src/dashboard/app/', import.meta.url))

/** Attributes, properties and parameters whose text a reader sees or hears. */
const VISIBLE = new Set([
  ...['aria-label', 'aria-valuetext', 'title', 'placeholder', 'alt', 'label', 'hint', 'action'],
  ...['lead', 'advice', 'message', 'text', 'empty'],
])
/** The text of the button that confirms, which is an attribute only. */
const CONFIRM = 'yes'
/** Elements whose text is the same in every language. */
const CODE = new Set(['code', 'kbd', 'pre'])
const BRAND = 'Tidings'
const WORD = /\p{L}{2}/u
/** A sentence, which is a text wherever it stands. */
const SENTENCE = /^\p{Lu}\p{Ll}* .*\p{L}{2}/u
/** The key of a message, such as `app.reload`. */
const KEY = /^[\w-]+\.\w+$/

/** A node of Babel's syntax tree. */
interface Node {
  type: string
  loc?: { start: { line: number } }
  [field: string]: unknown
}

/**
 * Lists the texts in the scripts of pages that are no messages of the catalogue, as `file:line
 * text`. Files whose path starts with one of `skipped` are left out.
 */
export function listUntranslated(skipped: readonly string[]): string[] {
  return readdirSync(app, { recursive: true, encoding: 'utf8' })
    .filter(name => /\.tsx?$/.test(name) && !skipped.some(start => name.startsWith(start)))
    .sort()
    .flatMap(name => findTexts(name, readFileSync(app + name, 'utf8')))
}

/** The texts in one script that are no messages. */
export function findTexts(name: string, source: string): string[] {
  const found: string[] = []
  visit(parseSource(name, source), false)
  return found

  /** `isShown` is true for a value that is shown. */
  function visit(node: unknown, isShown: boolean): void {
    if (Array.isArray(node)) return node.forEach(one => visit(one, isShown))
    if (!isNode(node)) return
    const { type } = node
    if (type === 'JSXElement' && CODE.has(toName(node['openingElement']))) return
    // The messages of errors that are thrown are for developers.
    if (type === 'NewExpression') return
    if (type === 'JSXText') report(node, String(node['value']))
    else if (type === 'StringLiteral' || type === 'TemplateLiteral') {
      const text = type === 'StringLiteral' ? String(node['value']) : toTemplateText(node)
      if (isShown || SENTENCE.test(text)) report(node, text)
    }
    for (const [field, child] of Object.entries(node)) {
      if (field !== 'loc') visit(child, passesOn(node, field, isShown))
    }
  }

  function report({ loc }: Node, text: string): void {
    const shown = text.trim().replace(/\s+/g, ' ')
    if (!WORD.test(shown) || shown === BRAND || KEY.test(shown)) return
    found.push(`${name}:${loc?.start.line} ${shown}`)
  }
}

/** Returns whether the value in a field of a node is shown. */
function passesOn({ type, ...node }: Node, field: string, isShown: boolean): boolean {
  switch (type) {
    case 'JSXElement':
    case 'JSXFragment':
      return field === 'children'
    case 'JSXAttribute':
      return field === 'value' && (VISIBLE.has(toName(node)) || toName(node) === CONFIRM)
    case 'ObjectProperty':
      return field === 'value' && VISIBLE.has(toName(node))
    case 'AssignmentPattern':
      return field === 'right' && VISIBLE.has(toName(node['left']))
    case 'ConditionalExpression':
      return isShown && field !== 'test'
    case 'LogicalExpression':
      return isShown && field === 'right'
    case 'JSXExpressionContainer':
    case 'TSAsExpression':
      return isShown
    default:
      return false
  }
}

function toTemplateText({ quasis }: Node): string {
  return (quasis as { value: { cooked: string } }[]).map(({ value }) => value.cooked).join('…')
}

/** The name of an element, an attribute, a property or a variable. */
function toName(node: unknown): string {
  if (!isNode(node) && (typeof node !== 'object' || node === null)) return ''
  const { name, key, value, namespace } = node as Node
  if (typeof name === 'string') return name
  if (isNode(namespace)) return ''
  if (isNode(name)) return toName(name)
  return isNode(key) ? toName(key) : typeof value === 'string' ? value : ''
}

function isNode(node: unknown): node is Node {
  return typeof node === 'object' && node !== null && 'type' in node
}
