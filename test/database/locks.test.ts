import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { LOCKS } from '../../src/database/locks.ts'
import { FUNCTIONS, MIGRATIONS } from '../../src/database/sql-files.ts'

const SRC = join(import.meta.dirname, '../../src')
const CALL = /pg_(?:try_)?advisory_(?:xact_)?(?:un)?lock(?:_shared|_all)*\(/g
/** Every call of a lock in src, with its file. */
const calls = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter(file => /\.(ts|sql)$/.test(file))
  .flatMap(file => listCalls(file, readFileSync(join(SRC, file), 'utf8')))

/** The functions of the schema. */
const functions = new Map<string, string>()
for (const { text } of FUNCTIONS.files) {
  for (const definition of text.split(/^(?=create or replace function )/m)) {
    const name = /^create or replace function (\w+)\(/.exec(definition)?.[1]
    if (name !== undefined) functions.set(name, definition)
  }
}

test('no two classes of locks have the same number', () => {
  const numbers = Object.values(LOCKS)
  expect(new Set(numbers).size).toBe(numbers.length)
})

test('every lock in src is taken through src/database/locks.ts', () => {
  const others = calls.filter(({ argument }) => !/^\$\{to(Lock|NameLock)\(/.test(argument))
  expect(others.map(({ place }) => place).toSorted()).toEqual([
    // Releases what the connection holds.
    'database/secrets/rotation.ts: pg_advisory_unlock_all()',
  ])
})

test('every lock in sql has a class of src/database/locks.ts, or the digest of a name', () => {
  const found = [...functions].flatMap(([name, text]) => listCalls(name, text))
  expect(found.length).toBe(5)
  const classes = new Set(Object.values(LOCKS).map(String))
  const unknown = found.filter(({ argument }) => {
    const [first = ''] = argument.split(',')
    return !classes.has(first) && !argument.startsWith('lock_digest(')
  })
  expect(unknown.map(({ place }) => place)).toEqual([])
})

test('no migration takes a lock', () => {
  expect(MIGRATIONS.flatMap(({ name, text }) => listCalls(name, text))).toEqual([])
})

interface LockCall {
  place: string
  argument: string
}

function listCalls(file: string, text: string): LockCall[] {
  return [...text.matchAll(CALL)].map(({ 0: call, index }) => {
    const rest = text.slice(index + call.length)
    const [argument = ''] = /^(?:[^()]|\((?:[^()]|\([^()]*\))*\))*/.exec(rest) ?? []
    return { place: `${file}: ${call}${argument})`, argument }
  })
}
