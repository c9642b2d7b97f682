import type { Role } from '../../../src/access/guard/permissions.ts'
import { SCOPES } from '../../../src/access/keys/schema.ts'
import { createKey } from './keys.ts'
import {
  newMember,
  newOrganization,
  type TestOrganization,
  type SignedInAccount,
} from './signed-in-account.ts'
import { createRequests } from './project.ts'
import type { Booted } from '../servers/server.ts'

/** An organization with a project, a key, and a member with a role. */
export interface TestTenant {
  organization: TestOrganization
  /** The project's uuid. */
  projectId: string
  /** `/api/projects/prj_…` */
  path: string
  account: SignedInAccount
  /** Requests of /v1 with the key. */
  v1: ReturnType<typeof createRequests>
  /** Sends an event; returns `data` of the answer. */
  send(event?: Record<string, unknown>, headers?: Record<string, string>): Promise<any>
  identify(userId: string, aliases?: string[], properties?: object): Promise<any>
}

export async function newTenant(
  server: Pick<Booted, 'sql' | 'url'>,
  role: Role = 'admin',
): Promise<TestTenant> {
  const organization = await newOrganization(server)
  const account = await newMember(server, organization, role)
  const projectId = organization.project.uuid
  const key = await createKey(server.sql, {
    projectId,
    name: 'test',
    limit: 1_000_000,
    scopes: SCOPES,
  })
  const v1 = createRequests(server.url, key.token)
  const expectDone = async (answered: ReturnType<typeof v1.post>) => {
    const { status, text, body } = await answered
    if (status > 201) throw new Error(`${status} ${text}`)
    return body.data
  }
  return {
    organization,
    projectId,
    path: `/api/projects/${organization.project.id}`,
    account,
    v1,
    send: (event = {}, headers = {}) =>
      expectDone(v1.post('/v1/events', { channelName: 'ops', title: 'Hello', ...event }, headers)),
    identify: (userId, aliases, properties) =>
      expectDone(v1.post('/v1/identify', { user_id: userId, aliases, properties })),
  }
}
