import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { SCOPES } from '../../src/access/keys/schema.ts'
import { makeFolder } from '../support/scratch.ts'
import { boot } from '../support/servers/server.ts'
import { scaled } from '../support/until.ts'
import { createKey } from '../support/worlds/keys.ts'
import { newManagementToken } from '../support/worlds/management-token.ts'
import { newTenant } from '../support/worlds/tenant.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const TOOLS = join(ROOT, 'test/generators')
const MODULES = join(TOOLS, 'node_modules')
const DOCUMENTS = { v1: '/openapi.json', management: '/api/management.json' }
const STRICT = {
  strict: true,
  noEmit: true,
  target: 'es2022',
  module: 'esnext',
  moduleResolution: 'bundler',
  types: [],
  lib: ['es2022', 'dom', 'dom.iterable'],
}

// Programs that use generated clients, as their documentation says. Each one gets the URL of the
// server, an API key, a management token and the id of a project. It prints one line.
const START = `
declare const process: { argv: string[] }
const [, , url = '', key = '', token = '', projectId = ''] = process.argv

async function call<Body>(path: string, secret: string, body?: object): Promise<Body> {
  const response = await fetch(url + path, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: 'Bearer ' + secret, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(await response.text())
  return (await response.json()) as Body
}
`

/** The program of each generator, by the name of its file. */
const STORIES: Readonly<Record<string, string>> = {
  'types.ts': `import type { components, paths } from './types-v1'
import type { paths as management } from './types-management'
${START}
type Create = paths['/v1/events']['post']
type Project = management['/api/projects/{projectId}']['get']

const event: components['schemas']['EventInput'] = { channelName: 'payments', title: 'Typed', icon: '💰' }
const created = await call<Create['responses'][201]['content']['application/json']>('/v1/events', key, event)
const project = await call<Project['responses'][200]['content']['application/json']>('/api/projects/' + projectId, token)
console.log(created.data.title, project.data.name)
`,
  'sdk.ts': `import { createClient } from './sdk-v1/client'
import { createEvent, identify, listEvents } from './sdk-v1'
import { createClient as createManagementClient } from './sdk-management/client'
import { createWebhook, deleteWebhook, searchEvents } from './sdk-management'
${START}
const client = createClient({ baseUrl: url, auth: () => key, throwOnError: true })
const body = { channelName: 'payments', title: 'By the SDK', metadata: { amount: 42 }, userId: 'ada' }
const created = await createEvent({ client, body, throwOnError: true })
const listed = await listEvents({ client, query: { limit: 10, channel: 'payments' }, throwOnError: true })
const user = await identify({ client, body: { user_id: 'ada', aliases: ['ada@example.com'] }, throwOnError: true })

const management = createManagementClient({ baseUrl: url, auth: () => token, throwOnError: true })
const options = { client: management, path: { projectId }, throwOnError: true } as const
const webhook = await createWebhook({ ...options, body: { url: 'https://93.184.216.34/hook', name: 'Generated' } })
await deleteWebhook({ ...options, path: { projectId, webhookId: webhook.data.data.id } })
const found = await searchEvents({ ...options, query: { q: 'sdk' } })
const isListed = listed.data.data.items.some(one => one.id === created.data.data.id)
console.log(isListed, user.data.data.aliases.created.join(), found.data.data.items.length > 0)
`,
  'zod.ts': `import { zCreateEventBody, zCreateEventResponse, zListEventsResponse } from './zod-v1/zod.gen'
${START}
const event = zCreateEventBody.parse({ channelName: 'payments', title: 'Checked by zod', tags: ['a'] })
const created = zCreateEventResponse.parse(await call('/v1/events', key, event))
const listed = zListEventsResponse.parse(await call('/v1/events?limit=5', key))
const isBlank = zCreateEventBody.safeParse({ channelName: ' ', title: 't' }).success
console.log(created.data.title, listed.data.items.length > 0, isBlank)
`,
}

test(
  'generated clients compile strictly, and run against the server',
  async () => {
    await using server = await boot()
    const folder = makeFolder()
    installTools()
    symlinkSync(MODULES, join(folder, 'node_modules'))
    for (const [name, path] of Object.entries(DOCUMENTS)) {
      const input = `${name}.json`
      writeFileSync(join(folder, input), await (await fetch(server.url + path)).text())
      const run = (tool: string, ...args: string[]) =>
        runIn(folder, 'node', join(MODULES, '.bin', tool), ...args)
      // Otherwise fields with a default would be required.
      const optional = ['--default-non-nullable', 'false']
      run('openapi-typescript', input, '-o', `types-${name}.ts`, ...optional)
      run('openapi-ts', '-i', input, '-o', `sdk-${name}`, '-c', '@hey-api/client-fetch')
    }
    runIn(
      folder,
      'node',
      join(MODULES, '.bin/openapi-ts'),
      '-i',
      'v1.json',
      '-o',
      'zod-v1',
      '-p',
      'zod',
    )
    for (const [name, text] of Object.entries(STORIES)) writeFileSync(join(folder, name), text)
    writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: STRICT }))
    runIn(folder, join(ROOT, 'node_modules/.bin/tsc'), '-p', '.')

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
    const args = [server.url, key.token, token.secret, organization.project.id]
    expect(await tell(folder, args, 'types.ts')).toBe('Typed Test project\n')
    expect(await tell(folder, args, 'sdk.ts')).toBe('true ada@example.com true\n')
    expect(await tell(folder, args, 'zod.ts')).toBe('Checked by zod true false\n')
  },
  scaled(120_000),
)

/** Installs the tools that read the documents, unless they are installed. */
function installTools(): void {
  const { dependencies } = JSON.parse(readFileSync(join(TOOLS, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  if (Object.keys(dependencies).every(name => existsSync(join(MODULES, name)))) return
  runIn(TOOLS, process.execPath, 'install', '--frozen-lockfile', '--silent')
}

/** Runs a command that needs no server of this process. Throws with its output if it fails. */
function runIn(cwd: string, command: string, ...args: string[]): void {
  const env = { ...process.env, CI: '1' }
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, env, encoding: 'utf8' })
  if (status !== 0) throw new Error(`${command} ${args.join(' ')}:\n${stdout}${stderr}`)
}

/** Returns the output of a program. */
async function tell(cwd: string, args: string[], name: string): Promise<string> {
  const child = Bun.spawn([process.execPath, name, ...args], { cwd, stderr: 'inherit' })
  return new Response(child.stdout).text()
}
