import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findFaults } from './support/english.ts'

const ROOT = join(import.meta.dirname, '..')

test('every sentence begins with its subject, and no comment is wider than 100 columns', () => {
  const folders = ['src', 'test', 'sql', 'docs', 'clients']
  const nested = folders.flatMap(folder =>
    readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' }).map(name =>
      join(folder, name),
    ),
  )
  const paths = [...readdirSync(ROOT), ...nested].filter(
    path =>
      /\.(?:tsx?|mjs|sql|md)$/.test(path) &&
      !/node_modules|dist\/|built\.ts$|clients\/typescript\/src\/schema\.ts$/.test(path),
  )
  const faults = paths.toSorted().flatMap(path =>
    // Examples of faults.
    path === join('test', 'english.test.ts')
      ? []
      : findFaults(path, readFileSync(join(ROOT, path), 'utf8')).map(
          ({ line, text }) => `${path}:${line}: ${text}`,
        ),
  )
  expect(faults).toEqual([])
})

describe('a fault is found', () => {
  const wide = `// ${'word '.repeat(20)}`
  test.each<[string, string, number[]]>([
    ['a.ts', '// Who asks too often waits.', [1]],
    ['a.ts', '/** Whether the key works. */\nconst works = true', [1]],
    ['a.ts', '/**\n * Returns the key. What it opens\n * is its project.\n */', [2]],
    ['a.ts', '// The key is\n// old. Whoever has it is refused.', [1]],
    ['a.ts', '// what fails is logged', [1]],
    ['a.ts', wide, [1]],
    ['a.ts', '/**\n * ' + 'word '.repeat(20) + '\n */', [2]],
    ['a.ts', "throw new Error('Whoever owns the key must sign in.')", [1]],
    ['a.ts', 'const text = `What ${name} needs is missing.`', [1]],
    ['a.tsx', '<p>Who can see this page is listed.</p>', [1]],
    ['a.test.ts', "test('what is deleted stays deleted', () => {})", [1]],
    ['a.test.ts', "describe('contract §12 whoever asks', () => {})", [1]],
    ['a.test.ts', "test('§4.1.2 that which is sent is kept', run)", [1]],
    ['a.test.ts', "test.each([\n  [1],\n])(\n  'delivery: where %s is', run)", [4]],
    ['a.sql', '-- Whose turn it is.\nselect 1;', [1]],
    ['a.md', '# Keys\n\nA key opens a project. What it opens\nis listed.', [3]],
    ['a.md', '- Whoever has the key', [1]],
    ['a.md', '| `key` | What opens the project. |', [1]],
    ['a.md', '**Whether it works** is unknown.', [1]],
  ])('%s: %j', (path, text, lines) => {
    expect(findFaults(path, text).map(({ line }) => line)).toEqual(lines)
  })
})

describe('no fault is found', () => {
  test.each([
    ['a.ts', '// A key whose project is deleted is refused. It says what is missing.'],
    ['a.ts', `// https://example.com/${'a'.repeat(100)}`],
    ['a.ts', `const text = '${'a'.repeat(100)}'`],
    ['a.ts', "ask('What is your name?')"],
    ['a.tsx', '<p>That is the beginning.</p>'],
    ['a.tsx', '<h2>Who can see it?</h2>'],
    ['a.test.ts', "test('contract §12 a viewer sees what is listed', run)"],
    ['a.test.ts', "expect(words).toBe('what')"],
    ['a.sql', "select '-- What is this' as text;"],
    ['a.md', '```sh\n# What this does\nWho knows\n```'],
    ['a.md', '## What is a channel?'],
    ['a.md', '| `key` | what opens the project |'],
  ])('%s: %j', (path, text) => {
    expect(findFaults(path, text)).toEqual([])
  })
})
