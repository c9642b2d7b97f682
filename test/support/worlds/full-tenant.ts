import { ROLES, type Role } from '../../../src/access/guard/permissions.ts'
import { createSession } from '../../../src/access/guard/sessions.ts'
import { hashSecret, newSecret } from '../../../src/access/guard/secret.ts'
import { newId, parseId, toId } from '../../../src/base/ids.ts'
import { insertDeadLetter } from './deliveries.ts'
import { insertConnection } from './connections.ts'
import { createKey } from './keys.ts'
import { newManagementToken } from './management-token.ts'
import {
  newMember,
  newOrganization,
  type TestOrganization,
  type SignedInAccount,
} from './signed-in-account.ts'
import { createRequests } from './project.ts'
import { insertPasskey } from './passkeys.ts'
import { insertSubscription } from './push.ts'
import { insertWebhook } from './webhooks.ts'
import type { ApiContract } from '../contracts.ts'
import type { Booted } from '../servers/server.ts'

/** An organization with members of every role, and a project with one of everything. */
export interface FullTenant {
  organization: TestOrganization
  members: Record<Role, SignedInAccount>
  /** The value of each path parameter, by name. */
  params: Record<string, string>
  /** Names that no other tenant may find: of channels, users, tags and words. */
  names: Record<string, string>
  /** The uuids of its rows in all tables. */
  uuids: string[]
  /** The secret of its open invite. */
  inviteToken: string
  key: string
}

export async function newFullTenant(server: Booted): Promise<FullTenant> {
  const { sql, url } = server
  const mark = newSecret(128).replace(/\W|_/g, '').slice(0, 12).toLowerCase()
  const organization = await newOrganization(server)
  const members = {} as Record<Role, SignedInAccount>
  // A second owner: the last one could neither leave nor be demoted.
  await newMember(server, organization, 'owner')
  for (const role of ROLES) members[role] = await newMember(server, organization, role)
  const project = organization.project
  const key = await createKey(sql, { projectId: project.uuid, name: `key ${mark}`, limit: 1e9 })
  const v1 = createRequests(url, key.token)
  await v1.post('/v1/identify', {
    user_id: `user-${mark}`,
    properties: { name: `Name ${mark}` },
    aliases: [`alias-${mark}`],
  })
  const event = await v1.post('/v1/events', {
    channelName: `channel ${mark}`,
    title: `title ${mark}`,
    level: 'critical',
    tags: [`tag-${mark}`],
    userId: `alias-${mark}`,
    source: `source-${mark}`,
    metadata: { secret: `metadata-${mark}` },
  })
  const inviteToken = newSecret(256)
  const invite = newId('inv')
  await sql`
    insert into invites (id, organization_id, hash, role, invited_by, expires_at)
    values (
      ${invite.uuid}, ${organization.uuid}, decode(${hashSecret(inviteToken)}, 'hex'), 'member',
      ${members.owner.uuid}, now() + interval '7 days'
    )
  `
  const resetLink = newId('rst')
  await sql`
    insert into reset_links (id, hash, account_id, expires_at, created_by, organization_id)
    values (
      ${resetLink.uuid}, sha256(${resetLink.uuid}::text::bytea), ${members.viewer.uuid},
      now() + interval '1 hour', ${members.owner.uuid}, ${organization.uuid}
    )
  `
  // A second session of the owner, to be ended.
  const session = await createSession(sql, {
    accountId: members.owner.uuid,
    method: 'password',
    isInstalled: false,
    isMultiFactor: false,
    address: '127.0.0.1',
    userAgent: `agent ${mark}`,
  })
  const { id: eventId, channelId } = event.body.data
  const passkeyId = await insertPasskey(server, members.owner)
  await sql`update sessions set is_multi_factor = true where account_id = ${members.owner.uuid}`
  const subscriptionId = await insertSubscription(server, members.owner)
  const connectionId = await insertConnection(server, members.owner)
  const webhook = await insertWebhook(server, project.uuid, { eventId, mark })
  const card = newId('crd')
  await sql`
    insert into insight_cards (project_id, id, position, kind, search, hours)
    values (${project.uuid}, ${card.uuid}, 1, 'number', ${`tag:tag-${mark}`}, 24)
  `
  const view = newId('viw')
  await sql`
    insert into views (project_id, id, account_id, name, search, created_seq)
    values (${project.uuid}, ${view.uuid}, ${members.viewer.uuid}, ${`view ${mark}`}, ${`tag:tag-${mark}`}, 0)
  `
  const silence = newId('sil')
  await sql`
    insert into silences (project_id, id, reason, key_name, created_at, starts_at, ends_at)
    values (
      ${project.uuid}, ${silence.uuid}, ${`reason ${mark}`}, ${`key ${mark}`}, now(), now() + interval '1 day',
      now() + interval '2 days'
    )
  `
  const heartbeat = newId('hbt')
  await sql`
    insert into heartbeats (project_id, id, channel_id, address, name, period_s, grace_s, ping_count)
    values (
      ${project.uuid}, ${heartbeat.uuid}, ${parseId('chn', channelId) ?? null}, gen_random_uuid(), ${`heartbeat ${mark}`}, 60, 60, 1
    )
  `
  await sql`
    insert into heartbeat_pings (project_id, heartbeat_id, number, at, kind, method, user_agent, body)
    values (${project.uuid}, ${heartbeat.uuid}, 1, now(), 'log', 'POST', 'curl', ${`ping ${mark}`})
  `
  const hook = newId('hok')
  await sql`
    insert into hooks (project_id, id, name, preset, channel, token_hash)
    values (${project.uuid}, ${hook.uuid}, ${`hook ${mark}`}, 'generic', ${`channel ${mark}`}, sha256(${mark}::text::bytea))
  `
  await sql`
    insert into hook_requests (project_id, hook_id, id, status, outcome, headers, body, event_ids)
    values (${project.uuid}, ${hook.uuid}, ${newId('hkr').uuid}, 200, 'Became 1 event', '{}', ${`body ${mark}`}, '{}')
  `
  const rule = newId('rul')
  await sql`
    insert into rules (
      project_id, id, channel_id, name, search, more_than, within_s, level, is_on, seq, state
    )
    values (
      ${project.uuid}, ${rule.uuid}, ${parseId('chn', channelId)!}, ${`rule ${mark}`}, ${`tag:tag-${mark}`}, 3, 600, 2, true, 0,
      '{"recent": [], "firingMs": null}'
    )
  `
  await sql`
    insert into questions (project_id, id, actions, expires_at, lowest_role)
    values (
      ${project.uuid}, ${parseId('evt', eventId) ?? ''}, ${sql.json([{ id: 'yes', label: `label-${mark}` }])},
      now() + interval '7 days', 'member'
    )
  `
  const deliveryId = await insertDeadLetter(server, project.uuid, { eventId, ...webhook })
  const { id: tokenId } = await newManagementToken(server, {
    accountId: members.owner.uuid,
    organizationId: organization.uuid,
    name: `token ${mark}`,
  })
  return {
    organization,
    members,
    params: {
      organizationId: organization.id,
      projectId: project.id,
      accountId: members.member.id,
      sessionId: toId('ses', session.id),
      inviteId: invite.id,
      resetLinkId: resetLink.id,
      keyId: key.id,
      channelId,
      eventId,
      userId: `user-${mark}`,
      alias: `alias-${mark}`,
      passkeyId,
      subscriptionId,
      connectionId,
      provider: 'company',
      ...webhook,
      deliveryId,
      cardId: card.id,
      viewId: view.id,
      ruleId: rule.id,
      silenceId: silence.id,
      heartbeatId: heartbeat.id,
      hookId: hook.id,
      tokenId,
    },
    names: {
      channel: `channel ${mark}`,
      title: `title ${mark}`,
      tag: `tag-${mark}`,
      user: `user-${mark}`,
      alias: `alias-${mark}`,
      source: `source-${mark}`,
      word: mark,
    },
    uuids: [organization.uuid, project.uuid, ...ROLES.map(role => members[role].uuid)],
    inviteToken,
    key: key.token,
  }
}

/** Returns the path of a contract with these parameters; throws for an unknown one. */
export function toPath({ path }: ApiContract, params: Readonly<Record<string, string>>): string {
  return path.replace(/:(\w+)/g, (_, name: string) => {
    const value = params[name]
    if (value === undefined) throw new Error(`${path}: no test knows what :${name} is`)
    return encodeURIComponent(value)
  })
}
