// Preloaded by record.ts into tests: writes each statement that servers send to RECORD_TO.
import { mock } from 'bun:test'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import postgres from 'postgres'

const file = join(process.env['RECORD_TO'] ?? '', `${process.pid}.jsonl`)
// The import above becomes the mock, too.
const real = postgres
const seen = new Set<string>()

function connect(options: postgres.Options<Record<string, never>>) {
  const name = String(options.connection?.application_name)
  const isServers = !/^tidings (test|bench|migrate)/.test(name)
  const debug = (_: number, text: string) => {
    if (seen.has(text)) return
    seen.add(text)
    appendFileSync(file, `${JSON.stringify(text)}\n`)
  }
  return real({ ...options, ...(isServers && { debug }) })
}

mock.module('postgres', () => ({ default: Object.assign(connect, real) }))
