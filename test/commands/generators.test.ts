import { afterAll, beforeAll, expect, test } from 'bun:test'
import { symlinkSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { STORIES } from '../support/generated-stories.ts'
import { installGenerators, MODULES, run, runTool, startPrism } from '../support/generators.ts'
import { newManagementToken } from '../support/worlds/management-token.ts'
import { makeFolder } from '../support/scratch.ts'
import { boot, type Booted } from '../support/servers/server.ts'
import { newTenant } from '../support/worlds/tenant.ts'
import { createKey } from '../support/worlds/keys.ts'
import { readTraffic, type Traffic } from '../support/traffic.ts'
import { SCOPES } from '../../src/access/keys/schema.ts'

/** API tests whose traffic goes through the proxies. */
const FILES = [
  ...['log/events/append', 'log/identities/identify', 'log/channels/channels'],
  ...['contract/10-drop-in', 'access/keys/key-routes', 'delivery/webhooks/webhooks'],
]
const DOCUMENTS = { v1: '/openapi.json', management: '/api/management.json' }
const BEFORE_MS = 120_000
const ROOT = join(import.meta.dirname, '../..')

interface Proxy extends Disposable {
  url: string
}

let server: Booted
let folder: string
let traffic: Traffic[]
let proxies: { v1: Proxy; management: Proxy }
/** Answers recorded requests from the record, and all others by the server. */
let relay: ReturnType<typeof Bun.serve>

beforeAll(async () => {
  const file = join(makeFolder(), 'traffic.ndjson')
  const recorded = run(
    process.execPath,
    [
      'test',
      '--timeout',
      '90000',
      '--parallel=2',
      '--no-isolate',
      ...FILES.map(path => `./test/${path}.api.test.ts`),
    ],
    { cwd: ROOT, env: { TIDINGS_TRAFFIC: file } },
  )
  ;[server] = await Promise.all([boot(), installGenerators()])
  folder = makeFolder()
  symlinkSync(MODULES, join(folder, 'node_modules'))
  relay = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: request => {
      const exchange = request.headers.get('x-exchange')
      if (exchange === null) return forward(request)
      const { status, headers, text } = traffic[Number(exchange)]!.answer
      return new Response(text, { status, headers: toForwarded(headers) })
    },
  })
  const upstream = `http://127.0.0.1:${relay.port}`
  const start = async (name: keyof typeof DOCUMENTS) => {
    const document = join(folder, `${name}.json`)
    await writeFile(document, await (await fetch(server.url + DOCUMENTS[name])).text())
    return startPrism(document, upstream)
  }
  const [v1, management] = await Promise.all([start('v1'), start('management')])
  proxies = { v1, management }
  await recorded
  traffic = readTraffic(file)
}, BEFORE_MS)

afterAll(async () => {
  proxies?.v1[Symbol.dispose]()
  proxies?.management[Symbol.dispose]()
  await relay?.stop(true)
  await server?.[Symbol.asyncDispose]()
})

function forward(request: Request): Promise<Response> {
  const { pathname, search } = new URL(request.url)
  const headers = new Headers(request.headers)
  headers.set('host', new URL(server.url).host)
  return fetch(server.url + pathname + search, {
    method: request.method,
    headers,
    ...(request.body && { body: request.body }),
  })
}

/** Returns the headers that do not describe the connection. */
function toForwarded(headers: Record<string, string>): Record<string, string> {
  const {
    connection,
    date,
    'content-length': length,
    'transfer-encoding': coding,
    ...rest
  } = headers
  return rest
}

test(
  'contract §8 Spectral reports nothing about either document',
  async () => {
    await writeFile(join(folder, 'spectral.yaml'), SPECTRAL_RULES)
    const documents = Object.keys(DOCUMENTS).map(name => `${name}.json`)
    const args = ['lint', ...documents, '--ruleset', 'spectral.yaml', '--fail-severity', 'warn']
    expect(await runTool('spectral', args, { cwd: folder })).toContain('No results')
  },
  BEFORE_MS,
)

test(
  'contract §8 Prism accepts every request that the API tests had accepted, with its answer',
  async () => {
    const violations: string[] = []
    const seen = { v1: 0, management: 0 }
    const replay = async (exchange: Traffic, index: number) => {
      const { method, path, headers, body, answer } = exchange
      const proxy = path.startsWith('/v1/') ? 'v1' : 'management'
      seen[proxy]++
      const response = await fetch(proxies[proxy].url + path, {
        method,
        headers: { ...headers, 'x-exchange': String(index) },
        ...(body !== undefined && { body }),
      })
      const text = await response.text()
      if (!text.includes('stoplight.io/prism/errors')) {
        if (response.status !== answer.status)
          violations.push(`${method} ${path}: ${response.status}`)
        return
      }
      // Prism may reject what the server rejected, but it must accept the answer.
      if (answer.status < 400 || text.includes('errors#VIOLATIONS') || text.includes('#UNKNOWN')) {
        violations.push(`${method} ${path} ${body ?? ''} ${answer.status}: ${text}`)
      }
    }
    for (let start = 0; start < traffic.length; start += 16) {
      await Promise.all(
        traffic.slice(start, start + 16).map((exchange, nth) => replay(exchange, start + nth)),
      )
    }
    expect(violations).toEqual([])
    expect(seen.v1).toBeGreaterThan(100)
    expect(seen.management).toBeGreaterThan(100)
  },
  BEFORE_MS,
)

test('contract §8 text of curl -d passes Prism, whatever it has of a form', async () => {
  const { url, key } = await newCaller()
  const texts = [
    'Backup failed',
    '100% done & a=b',
    '💾 Disk full\nleft = 3 & x[1]=4',
    'a&b&c==d&&=+',
  ]
  for (const text of texts) {
    const args = [
      '-s',
      '-H',
      `Authorization: Bearer ${key}`,
      '-d',
      text,
      `${url}/v1/channels/backups`,
    ]
    const { data } = JSON.parse(await run('curl', args, { cwd: folder }))
    expect(text.replace('💾 ', '').split('\n')).toEqual(
      [data.title, data.description].filter(part => part !== null),
    )
  }
})

test(
  'generated clients compile strictly, and run against the server through Prism',
  async () => {
    const generate = ([name, input]: [string, string]) => [
      // Otherwise fields with a default would be required.
      runTool(
        'openapi-typescript',
        [input, '-o', `types-${name}.ts`, '--default-non-nullable', 'false'],
        { cwd: folder },
      ),
      runTool('openapi-ts', ['-i', input, '-o', `sdk-${name}`, '-c', '@hey-api/client-fetch'], {
        cwd: folder,
      }),
      runTool('orval', ['--input', input, '--output', `zod-${name}.ts`, '--client', 'zod'], {
        cwd: folder,
      }),
    ]
    await Promise.all(Object.keys(DOCUMENTS).flatMap(name => generate([name, `${name}.json`])))
    for (const [name, text] of Object.entries(STORIES)) await writeFile(join(folder, name), text)
    await writeFile(join(folder, 'package.json'), '{"type":"module"}')
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: STRICT }))

    const { args } = await newCaller()
    const tell = (name: string) => run(process.execPath, [name, ...args], { cwd: folder })
    const tsc = join(ROOT, 'node_modules/.bin/tsc')
    const [, types, sdk, zod] = await Promise.all([
      run(tsc, ['-p', '.'], { cwd: folder }),
      tell('types.ts'),
      tell('sdk.ts'),
      tell('zod.ts'),
    ])
    expect(types).toBe('Typed Test project\n')
    expect(sdk).toBe('true ada@example.com true\n')
    expect(zod).toBe('Checked by zod true Test project false\n')
  },
  BEFORE_MS,
)

// The document has no contact: it describes your server. A summary can say all of an operation.
// In OpenAPI 3.1, keys can have scopes, which Spectral 6.16 knows of OAuth alone.
const SPECTRAL_RULES = `extends: ["spectral:oas"]
rules:
  info-contact: off
  operation-description: off
  oas3-operation-security-defined: off
`
const STRICT = {
  strict: true,
  noEmit: true,
  target: 'es2022',
  module: 'esnext',
  moduleResolution: 'bundler',
  types: [],
  lib: ['es2022', 'dom', 'dom.iterable'],
}

/** Returns an API key and a management token of one project, and the proxies. */
async function newCaller() {
  const { organization, account } = await newTenant(server)
  const key = await createKey(server.sql, {
    projectId: organization.project.uuid,
    name: 'generated',
    limit: 1_000_000,
    scopes: SCOPES,
  })
  const token = await newManagementToken(server, {
    accountId: account.uuid,
    organizationId: organization.uuid,
  })
  const { v1, management } = proxies
  return {
    url: v1.url,
    key: key.token,
    args: [v1.url, key.token, management.url, token.secret, organization.project.id],
  }
}
