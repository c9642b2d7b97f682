import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

export const ROOT = resolve(import.meta.dirname, '../..')

/** A fenced block of code in a Markdown file. */
export interface CodeBlock {
  /** `docs/page.md:12`, with the line where it begins. */
  place: string
  language: string
  text: string
  /** True if readers must fill it in: it has an ellipsis. */
  isTemplate: boolean
}

/** Returns the paths of README.md and of every page of docs/. */
export function listMarkdown(): string[] {
  const pages = readdirSync(join(ROOT, 'docs')).filter(name => name.endsWith('.md'))
  return ['README.md', ...pages.sort().map(name => `docs/${name}`)]
}

/** Returns the blocks of a Markdown file, in order. */
export function listCodeBlocks(path: string): CodeBlock[] {
  const file = readFileSync(join(ROOT, path), 'utf8')
  return [...file.matchAll(/^( *)```(\w*)\n([\s\S]*?)^\1```$/gm)].map(
    ({ index, 1: indent = '', 2: language = '', 3: text = '' }) => ({
      place: `${path}:${file.slice(0, index).split('\n').length}`,
      language,
      text: text.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
      isTemplate: text.includes('…'),
    }),
  )
}

/** Returns README.md, every page of docs/, and the other pages for people in the root. */
export function listAllMarkdown(): string[] {
  return [...listMarkdown(), 'AGENTS.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md']
}

export function readText(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8')
}

/** Returns the text of a section up to the next heading of its level or above. */
export function readSection(path: string, heading: string): string {
  const pattern = new RegExp(`^(#+) ${RegExp.escape(heading)}\n([\\s\\S]*)`, 'm')
  const [, level = '', rest = ''] = pattern.exec(readText(path)) ?? []
  if (level === '') return ''
  const [section = ''] = rest.split(new RegExp(`^#{1,${level.length}} `, 'm'))
  return section
}

/** Returns the cells of the first table in `text`, without its header. */
export function listRows(text: string): string[][] {
  const lines = text.split('\n')
  const first = lines.findIndex(line => line.startsWith('| -'))
  if (first < 0) return []
  const rest = lines.slice(first + 1)
  const end = rest.findIndex(line => !line.startsWith('|'))
  return rest.slice(0, end < 0 ? undefined : end).map(toCells)
}

/** Returns the text of a cell that is one piece of code. */
export function toCode(cell: string): string {
  return cell.replace(/^`(.*)`$/, '$1')
}

function toCells(line: string): string[] {
  return line
    .split('|')
    .slice(1, -1)
    .map(cell => cell.trim())
}
