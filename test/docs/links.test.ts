import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { renderMarkdown } from '../../src/dashboard/docs/markdown.ts'
import { listAllMarkdown, ROOT } from '../support/docs.ts'

const files = listAllMarkdown()
const texts = new Map(files.map(path => [path, readFileSync(join(ROOT, path), 'utf8')]))

const anchors = new Map<string, string[]>()

function listAnchors(path: string): string[] {
  const known = anchors.get(path)
  if (known) return known
  const text = texts.get(path) ?? readFileSync(join(ROOT, path), 'utf8')
  const page = renderMarkdown(
    { name: path, text },
    {
      findImage: url => ({ url, width: 1, height: 1 }),
    },
  )
  const ids = page.headings.map(({ id }) => id)
  anchors.set(path, ids)
  return ids
}

/** Returns the targets of links and images, outside of code. */
function listTargets(text: string): string[] {
  const prose = text.replace(/^( *)```[\s\S]*?^\1```$/gm, '').replace(/`[^`\n]*`/g, '')
  const links = [...prose.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target = '']) => target)
  const attributes = [...prose.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url = '']) => url)
  return [...links, ...attributes].filter(target => !/^[a-z]+:/.test(target))
}

test.each(files)('every relative link and image of %s has a target', path => {
  const broken = listTargets(texts.get(path) ?? '').filter(target => {
    const [file = '', anchor] = target.split('#')
    const goal = file === '' ? path : normalize(join(dirname(path), file))
    if (!existsSync(join(ROOT, goal))) return true
    return anchor !== undefined && goal.endsWith('.md') && !listAnchors(goal).includes(anchor)
  })
  expect(broken).toEqual([])
})

test('docs/README.md links to every page', () => {
  const path = 'docs/README.md'
  const index = texts.get(path) ?? ''
  const missing = files.filter(
    page => /^docs\/(?!README)/.test(page) && !index.includes(`](${relative(dirname(path), page)}`),
  )
  expect(missing).toEqual([])
})
