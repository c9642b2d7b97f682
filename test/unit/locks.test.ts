import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { LOCKS } from '../../src/db/locks.ts'
import { MIGRATIONS } from '../../src/db/migrate.ts'

const SRC = join(import.meta.dirname, '../../src')
const CALL = /pg_(?:try_)?advisory_(?:xact_)?(?:un)?lock(?:_shared|_all)*\(/g
/** The locks of functions that later files replace. */
const REPLACED = new Set(['lock_idempotency_keys', 'try_lock_cleanup', 'index_users', 'reap'])

/** Every call of a lock in src, with its file. */
const calls = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter(file => /\.(ts|sql)$/.test(file))
  .flatMap(file => listCalls(file, readFileSync(join(SRC, file), 'utf8')))

/** The functions of the schema, as the last file that defines them does. */
const functions = new Map<string, string>()
for (const { text } of MIGRATIONS) {
  for (const definition of text.split(/^(?=create (?:or replace )?function )/m)) {
    const name = /^create (?:or replace )?function (\w+)\(/.exec(definition)?.[1]
    if (name !== undefined) functions.set(name, definition)
  }
}

test('no two classes of locks have the same number', () => {
  const numbers = Object.values(LOCKS)
  expect(new Set(numbers).size).toBe(numbers.length)
})

test('every lock in src is taken through src/db/locks.ts', () => {
  const others = calls.filter(({ argument }) => !/^\$\{to(Lock|NameLock)\(/.test(argument))
  expect(others.map(({ place }) => place).toSorted()).toEqual([
    // Servers of 0.2.0 know this lock of migrations alone.
    'db/migrate.ts: pg_advisory_xact_lock(${LOCK_OF_0_2_0}::bigint)',
    // Releases what the connection holds.
    'secrets/rotation.ts: pg_advisory_unlock_all()',
  ])
})

test('every lock in sql has a class of src/db/locks.ts, or the digest of a name', () => {
  const found = [...functions].flatMap(([name, text]) => listCalls(name, text))
  expect(found.length).toBe(4)
  const classes = new Set(Object.values(LOCKS).map(String))
  const unknown = found.filter(({ argument }) => {
    const [first = ''] = argument.split(',')
    return !classes.has(first) && !argument.startsWith('lock_digest(')
  })
  expect(unknown.map(({ place }) => place)).toEqual([])
})

test('functions are replaced, and no lock stands outside of a function', () => {
  for (const { name, text } of MIGRATIONS) {
    const definitions = text.split(/^(?=create (?:or replace )?function )/m)
    for (const definition of definitions) {
      const own = /^create (?:or replace )?function (\w+)\(/.exec(definition)?.[1] ?? ''
      for (const { place } of listCalls(name, definition)) {
        const isLast = functions.get(own) === definition
        expect([place, isLast || REPLACED.has(own)]).toEqual([place, true])
      }
    }
  }
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
