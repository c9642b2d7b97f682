import { beforeAll, expect, spyOn, test } from 'bun:test'
import {
  newOrganization,
  newSignedInAccount,
  type SignedInAccount,
} from '../../support/worlds/signed-in-account.ts'
import { listOperations } from '../../support/operations.ts'
import { newProject, type TestProject } from '../../support/worlds/project.ts'
import { withServer } from '../../support/servers/server.ts'

// The cost of refused requests.

const server = withServer()
let owner: SignedInAccount
let project: TestProject
let ids: Record<string, string>
beforeAll(async () => {
  const organization = await newOrganization(server)
  owner = await newSignedInAccount(server, { isOperator: true })
  await server.sql`
    insert into memberships (organization_id, account_id, role)
    values (${organization.uuid}, ${owner.uuid}, 'owner')
  `
  project = await newProject(server)
  ids = { organizationId: organization.id, projectId: organization.project.id }
})

interface Operation {
  requestBody?: {
    content: Record<string, { schema: { $ref?: string; properties?: Record<string, unknown> } }>
  }
  responses: Record<string, { description: string } | undefined>
}

/** Returns every operation that takes JSON, with its fields and the KiB of its largest body. */
async function listWrites(document: string) {
  const { paths, components } = (await (await fetch(server.url + document)).json()) as {
    paths: Record<string, Record<string, Operation>>
    components: { schemas: Record<string, { properties?: Record<string, unknown> }> }
  }
  return listOperations({ paths }).flatMap(({ method, path, requestBody, responses }) => {
    const schema = requestBody?.content['application/json']?.schema
    if (!schema) return []
    const named = components.schemas[schema.$ref?.split('/').at(-1) ?? '']
    const fields = Object.keys((named ?? schema).properties ?? {})
    const maxKib = Number(/\d+(?= KiB)/.exec(responses['413']?.description ?? '')?.[0])
    return [{ method, path, fields, maxKib }]
  })
}

/** Returns a body of almost `maxKib`, 60 levels deep in each of `fields` and in an unknown one. */
function toDeepBody(fields: readonly string[], maxKib: number): string {
  const names = [...fields, 'unknown']
  const width = Math.floor((maxKib * 450) / names.length)
  const deep = `${'['.repeat(60)}${'1,'.repeat(width)}1${']'.repeat(60)}`
  return `{${names.map(name => `${JSON.stringify(name)}:${deep}`).join(',')}}`
}

test.each(['/openapi.json', '/api/management.json'])(
  'a refused deep body is never serialized: %s',
  async document => {
    const writes = await listWrites(document)
    expect(writes.length).toBeGreaterThan(2)
    const stringify = spyOn(JSON, 'stringify')
    try {
      for (const { method, path, fields, maxKib } of writes) {
        const body = toDeepBody(fields, maxKib)
        stringify.mockClear()
        const target = path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? 'none')
        const headers = { 'content-type': 'application/json' }
        const client = path.startsWith('/v1/') ? project : owner
        const answer = await client.request(target, { method, body, headers })
        const longest = stringify.mock.results.map(({ value }) => String(value).length)
        expect([method, path, answer.status]).toEqual([method, path, 400])
        expect([method, path, Math.max(0, ...longest) < body.length]).toEqual([method, path, true])
      }
    } finally {
      stringify.mockRestore()
    }
  },
)

test.each(['/v1/events', '/api/me'])(
  '%s: query and cookies are not read without authentication',
  async path => {
    const pairs = (separator: string) =>
      Array.from({ length: 500 }, (_, index) => `%61${index}=%62`).join(separator)
    const cookie = `${owner.cookie.replace(/=.*/, '=x')}; ${pairs('; ')}`
    const decode = spyOn(globalThis, 'decodeURIComponent')
    try {
      const { status } = await fetch(`${server.url}${path}?${pairs('&')}`, { headers: { cookie } })
      expect([status, decode.mock.calls.length < 5]).toEqual([401, true])
    } finally {
      decode.mockRestore()
    }
  },
)
