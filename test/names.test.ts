import { expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')
/** Tests that are found by their kind. */
const KINDS = ['browser', 'commands', 'docs', 'faults', 'properties', 'runner', 'runtimes']
/** Tests of the whole tree. */
const WHOLE = ['english', 'layers', 'names']
const CONTRACT = readFileSync(join(ROOT, 'docs/contract.md'), 'utf8')

/** Returns true if the contract has the section or case that begins a name: `case-20-tenants`. */
function hasSection(name: string): boolean {
  const [, document = 'contract', number] =
    /^(?:(case|dashboard|design|reliability)-)?(\d+)-[a-z]/.exec(name) ?? []
  const title = `${document[0]?.toUpperCase()}${document.slice(1)}`
  const section = document === 'case' ? `**${title} ${number}.**` : `${title} §${number}:`
  return number !== undefined && CONTRACT.includes(section)
}

/** Returns true if `src`, or another folder with sources, has the file or the folder. */
function hasSource(path: string): boolean {
  const places = [
    `src/${path}`,
    path,
    path.replace('clients/typescript/', 'clients/typescript/src/'),
    `test/${path}`,
  ]
  return places.some(place =>
    ['', '.ts', '.tsx', '.json'].some(extension => existsSync(join(ROOT, place + extension))),
  )
}

test('the path of each test names a source, or a section of the contract', () => {
  const files = listTests().filter(path => !KINDS.includes(path.split('/')[0] ?? ''))
  expect(files.length).toBeGreaterThan(100)
  const lost = files.filter(file => {
    // An aspect of the source may come before the kind.
    const path = file.replace(/(?:\.[a-z-]+)?\.test\.tsx?$/, '').replace(/\.[a-z-]+$/, '')
    if (path.startsWith('contract/')) return !hasSection(path.slice('contract/'.length))
    return !WHOLE.includes(path) && !hasSource(path)
  })
  expect(lost).toEqual([])
})

test('tests wait for a thing, and never for time', () => {
  const sleepers = listTests().filter(file =>
    /Bun\.sleep[(]|setTimeout as[ ]/.test(readFileSync(join(ROOT, 'test', file), 'utf8')),
  )
  // It sees that nothing happens.
  expect(sleepers).toEqual(['support/scratch-watcher.test.ts'])
})

function listTests(): string[] {
  return readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' }).filter(
    path => /\.test\.tsx?$/.test(path) && !path.includes('node_modules'),
  )
}
