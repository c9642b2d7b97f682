import { expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { unpackMessages } from '../../src/dashboard/app/locales/packed.ts'
import { listUnused, shortenKeys } from '../../src/dashboard/message-keys.ts'
import { readCatalogue } from '../../src/dashboard/messages.ts'

const app = fileURLToPath(new URL('../../src/dashboard/app/', import.meta.url))

function toFiles(texts: Record<string, string>): Map<string, Uint8Array> {
  return new Map(Object.entries(texts).map(([name, text]) => [name, Buffer.from(text)]))
}

test('keys are short in scripts and messages, but not those that scripts put together', () => {
  const { scripts, messages } = shortenKeys(
    toFiles({
      'main.js': 't("feed.empty");t("audit.all");const text="feed.other";t(`words.${role}Does`)',
      'audit.js': 't("audit.kind."+kind);t(isOn?"feed.on":"words.save")',
    }),
    toFiles({
      'en-app.json': '{"feed.empty":["No events"],"feed.on":"On","words.save":"Save"}',
      'de-app.json': '{"feed.empty":["Keine"],"feed.on":"Ein","words.save":"Speichern"}',
      'en-audit.json': '{"audit.all":"All","audit.kind.key":"Key","words.ownerDoes":"all"}',
    }),
  )
  expect([...scripts.values()].map(String)).toEqual([
    't("1");t("0");const text="feed.other";t(`words.${role}Does`)',
    't("audit.kind."+kind);t(isOn?"2":"3")',
  ])
  expect([...messages.values()].map(String)).toEqual([
    '[1,["No events"],"On","Save"]',
    '[1,["Keine"],"Ein","Speichern"]',
    '[0,"All",{"audit.kind.key":"Key","words.ownerDoes":"all"}]',
  ])
  expect([...messages.values()].map(file => unpackMessages(JSON.parse(String(file))))).toEqual([
    { '1': ['No events'], '2': 'On', '3': 'Save' },
    { '1': ['Keine'], '2': 'Ein', '3': 'Speichern' },
    { '0': 'All', 'audit.kind.key': 'Key', 'words.ownerDoes': 'all' },
  ])
})

test('every message is used', () => {
  const { shell: _, ...catalogue } = readCatalogue('en') // Only the build reads the shell's.
  const keys = Object.entries(catalogue).flatMap(([file, texts]) =>
    Object.keys(texts).map(key => `${file}.${key}`),
  )
  const sources = readdirSync(app, { recursive: true, encoding: 'utf8' })
    .filter(name => /\.tsx?$/.test(name))
    .map(name => readFileSync(app + name, 'utf8'))
  expect(listUnused(keys, sources)).toEqual([])
})
