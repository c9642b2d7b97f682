import { expect, test } from 'bun:test'
import { listOperations } from '../../support/operations.ts'
import { newMember, newOrganization } from '../../support/worlds/signed-in-account.ts'
import { newProject } from '../../support/worlds/project.ts'
import { withServer } from '../../support/servers/server.ts'
import { scaled } from '../../support/until.ts'

// An account and a project have four slots each, which no request may keep.

const server = withServer()

test('every operation of /api releases its slot, with any answer', async () => {
  const document: any = await (await fetch(`${server.url}/api/management.json`)).json()
  for (const { method, path, requestBody } of listOperations(document)) {
    const organization = await newOrganization(server)
    const ids: Record<string, string> = {
      organizationId: organization.id,
      projectId: organization.project.id,
    }
    const owner = await newMember(server, organization, 'owner')
    const target = path.replace(/\{(\w+)\}/g, (_, name: string) => ids[name] ?? 'none')
    for (let turn = 0; turn < 5; turn++) {
      const signal = AbortSignal.timeout(scaled(10_000))
      const response = await fetch(server.url + target, {
        method,
        signal,
        headers: {
          cookie: owner.cookie,
          origin: server.url,
          'content-type': 'application/json',
        },
        ...(requestBody && { body: '{"name":"x","unknown":1}' }),
      }).catch(() => undefined)
      expect([method, path, (response?.status ?? 599) < 500]).toEqual([method, path, true])
      await response?.arrayBuffer()
    }
  }
})

test('requests that are aborted, or whose statements fail, release their slots', async () => {
  const { get, key } = await newProject(server)
  await server.sql.begin(async tx => {
    await tx`lock table events, channels in access exclusive mode`
    const gone = Array.from({ length: 12 }, () =>
      fetch(`${server.url}/v1/events`, {
        headers: { authorization: `Bearer ${key}` },
        signal: AbortSignal.timeout(300),
      }).catch(() => undefined),
    )
    await Promise.all(gone)
  })
  const answers = await Promise.all(Array.from({ length: 8 }, () => get('/v1/events')))
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200))
  await server.sql`alter table channels rename to gone_channels`
  try {
    for (let turn = 0; turn < 6; turn++) expect((await get('/v1/channels')).status).toBe(500)
  } finally {
    await server.sql`alter table gone_channels rename to channels`
  }
  expect((await get('/v1/channels')).status).toBe(200)
})
