import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

export const ROOT = resolve(import.meta.dirname, '../..')

/** A fenced block of code in a Markdown file. */
export interface CodeBlock {
  /** `docs/page.md:12`, with the line where it begins. */
  place: string
  language: string
  text: string
  /** Whether readers must fill it in: it has an ellipsis. */
  isTemplate: boolean
}

/** The paths of README.md and of every page of docs/. */
export function listMarkdown(): string[] {
  const pages = readdirSync(join(ROOT, 'docs')).filter(name => name.endsWith('.md'))
  return ['README.md', ...pages.sort().map(name => `docs/${name}`)]
}

/** The blocks of a Markdown file, in order. */
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
