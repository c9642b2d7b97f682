import { Kind, type TSchema } from '@sinclair/typebox'
import { Value } from '@sinclair/typebox/value'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { spawnSync } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { readIdempotencyKey } from '../../src/http/limits/idempotency.ts'
import { NOT_BLANK } from '../../src/http/rules.ts'
import { fromPlainText } from '../../src/log/events/new-event.ts'
import { EventInput, TextInput } from '../../src/log/events/schema.ts'
import { listApiFeatures, listV1Features } from '../../src/server/features.ts'
import { momentUpTo, textOf } from '../properties/texts.ts'
import { makeFolder } from '../support/scratch.ts'
import { boot } from '../support/servers/server.ts'
import { hasTool } from '../support/tools.ts'
import { scaled } from '../support/until.ts'

/** Texts that are tried against every schema. */
const SAMPLES = 1_000

const PYTHON = `
import json, re, sys
for pattern, texts in json.load(open(sys.argv[1])).items():
    try: compiled = re.compile(pattern)
    except re.error as error: print(pattern, error); continue
    for text in texts:
        if not compiled.search(text): print(pattern, ascii(text))
`
const GO = `package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
)

func main() {
	samples := map[string][]string{}
	file, _ := os.ReadFile(os.Args[1])
	if err := json.Unmarshal(file, &samples); err != nil {
		panic(err)
	}
	for pattern, texts := range samples {
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			fmt.Println(pattern, err)
			continue
		}
		for _, text := range texts {
			if !compiled.MatchString(text) {
				fmt.Printf("%s %q\\n", pattern, text)
			}
		}
	}
}
`

/** The accepted texts of every pattern in both documents, with the documented examples. */
const accepted = new Map<string, Set<string>>()
let folder: string
beforeAll(async () => {
  await using server = await boot()
  let keyPattern = ''
  const texts = fc.sample(fc.oneof(textOf({}), momentUpTo(9998), fc.string()), SAMPLES)
  for (const path of ['/openapi.json', '/api/management.json']) {
    visit(await (await fetch(server.url + path)).json(), ({ pattern, examples, name, schema }) => {
      if (typeof pattern === 'string')
        add(
          pattern,
          [examples ?? []].flat().filter(one => typeof one === 'string'),
        )
      if (name === 'Idempotency-Key') keyPattern = (schema as { pattern: string }).pattern
    })
  }
  // The pattern of a kind of our own only documents it: a rule validates.
  visit(listRouteSchemas(), schema => {
    if (typeof schema['pattern'] !== 'string' || !(Kind in schema)) return
    add(
      schema['pattern'],
      texts.filter(text => Value.Check(schema as unknown as TSchema, text)),
    )
  })
  add(
    String(TextInput.pattern),
    texts.filter(text => isEventText(text)),
  )
  add(keyPattern, texts.filter(isKey))
  folder = makeFolder()
  const samples = Object.fromEntries([...accepted].map(([pattern, set]) => [pattern, [...set]]))
  await writeFile(join(folder, 'samples.json'), JSON.stringify(samples))
  await writeFile(join(folder, 'match.py'), PYTHON)
  await writeFile(join(folder, 'match.go'), GO)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

test('contract §8 JavaScript without a flag reads every pattern, and each accepted text matches', () => {
  expect(accepted.size).toBeGreaterThan(3)
  for (const [pattern, texts] of accepted) {
    const compiled = new RegExp(pattern)
    expect([pattern, [...texts].filter(text => !compiled.test(text))]).toEqual([pattern, []])
  }
})

test('contract §8 the samples contain text that only some languages count as white space', () => {
  const texts = [...(accepted.get(NOT_BLANK) ?? [])]
  expect(texts.length).toBeGreaterThan(100)
  expect(texts.some(text => /[\u0085\u00a0\u3000]/.test(text))).toBe(true)
})

test.skipIf(!hasTool('python3'))('contract §8 Python reads every pattern alike', () => {
  expect(run('python3', ['match.py', 'samples.json'])).toBe('')
})

test.skipIf(!hasTool('go'))(
  'contract §8 RE2, as Go has it, reads every pattern alike',
  () => {
    expect(run('go', ['run', 'match.go', 'samples.json'])).toBe('')
  },
  scaled(60_000),
)

/** Returns what a program in `folder` prints. */
function run(command: string, args: string[]): string {
  const { stdout, stderr } = spawnSync(command, args, { cwd: folder, encoding: 'utf8' })
  return stdout + stderr
}

/** Returns all that routes declare for their requests, as TypeBox has it. */
function listRouteSchemas(): unknown[] {
  const gate = { providers: [] } as never
  return [...listApiFeatures(gate), ...listV1Features(gate)]
    .flatMap(({ routes }): readonly { hooks: any }[] => routes)
    .map(({ hooks }) => [hooks.standaloneValidator, hooks.query, hooks.params])
}

function isEventText(text: string): boolean {
  return Value.Check(EventInput, { channelName: 'c', ...fromPlainText(text) })
}

function isKey(key: string): boolean {
  try {
    const headers = new Headers({ 'idempotency-key': key })
    return headers.get('idempotency-key') === key && readIdempotencyKey(headers) === key
  } catch {
    return false
  }
}

function add(pattern: string, texts: readonly string[]): void {
  accepted.set(pattern, new Set([...(accepted.get(pattern) ?? []), ...texts]))
}

/** Calls `use` with every object in `value`. */
function visit(value: unknown, use: (one: Record<string, unknown>) => void): void {
  if (typeof value !== 'object' || value === null) return
  use(value as Record<string, unknown>)
  Object.values(value).forEach(inner => visit(inner, use))
}
