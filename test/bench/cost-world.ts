import { createOrganization } from '../../src/access/organizations/organizations.ts'
import { createProject } from '../../src/access/organizations/projects.ts'
import { COMMAND_LINE } from '../../src/access/audit/audit.ts'
import { toArray } from '../../src/database/arrays.ts'
import { connect, type Tx } from '../../src/database/sql.ts'
import { newId } from '../../src/base/ids.ts'
import { createKey } from '../../src/access/keys/keys.ts'
import { newSigningSecret } from '../../src/delivery/webhooks/signing.ts'
import { toSealedCell } from '../../src/delivery/webhooks/sealing.ts'
import { cloneDatabase, copyDatabase } from '../support/servers/postgres.ts'
import { testSecrets } from '../support/secret.ts'
import { BIG_PROJECT, ensureBenchDatabase, EVENTS, fillEvents } from './read-data.ts'
import { makeViewer } from './server.ts'

/** The size of each axis. */
export interface Shape {
  /** Existing events; half of them are in the measured project. */
  events: number
  /** Channels that a project's events use, besides the watched one. */
  channels: number
  /** Sockets that follow the project; from ten projects on, one per ten projects. */
  sockets: number
  /** Webhooks per project, also beyond the limit of 50. */
  endpoints: number
  projects: number
}

/** A database of that shape. */
export interface World {
  shape: Shape
  databaseUrl: string
  projects: { uuid: string; token: string }[]
  /** The key of a project without followers. */
  other: string
  /**
   * Sessions of members: the n-th sees the n-th hundred of projects; more sockets need more of
   * them.
   */
  cookies: string[]
}

/** The channel that the webhooks match. */
export const WATCHED = 'watched'
const PER_ORGANIZATION = 100
const PER_ACCOUNT = 16
const NO_LIMIT = 1_000_000_000

export async function buildWorld(shape: Shape, hookUrl: string): Promise<World> {
  const databaseUrl = await makeDatabase(shape.events)
  const sql = connect(databaseUrl, { name: 'bench', max: 1, settings: { statement_timeout: 0 } })
  try {
    return await sql.begin(async tx => fillWorld(tx, { shape, databaseUrl, hookUrl }))
  } finally {
    await sql.end()
  }
}

/**
 * Copies a world, because measuring adds to it. The biggest world is not copied: some more events
 * do not change it.
 */
export async function copyWorld(world: World): Promise<World> {
  if (world.shape.events === EVENTS) return world
  return { ...world, databaseUrl: await copyDatabase(world.databaseUrl) }
}

async function makeDatabase(events: number): Promise<string> {
  if (events === EVENTS) return copyDatabase(await ensureBenchDatabase())
  const databaseUrl = await cloneDatabase()
  if (events > 0) await fillEvents(databaseUrl, events)
  return databaseUrl
}

async function fillWorld(
  tx: Tx,
  { shape, databaseUrl, hookUrl }: { shape: Shape; databaseUrl: string; hookUrl: string },
): Promise<World> {
  const organizations: string[] = []
  const uuids: string[] = []
  const { sockets, endpoints, channels } = shape
  if (shape.events > 0) {
    uuids.push(BIG_PROJECT)
    const [{ id }] = await tx<[{ id: string }]>`
      select organization_id as id from projects where id = ${BIG_PROJECT}
    `
    organizations.push(id)
  }
  while (organizations.length * PER_ORGANIZATION < shape.projects)
    organizations.push(await createOrganization(tx, `Bench ${organizations.length}`))
  // The statements are sent together: separate round trips would take most of the time.
  const made = Array.from({ length: shape.projects - uuids.length }, (_, nth) =>
    createProject(tx, {
      organizationId: organizations[Math.floor(nth / PER_ORGANIZATION)] ?? '',
      name: `Bench ${nth}`,
    }),
  )
  uuids.push(...(await Promise.all(made)))
  const other = await createProject(tx, {
    organizationId: await createOrganization(tx, 'Other'),
    name: 'Other',
  })
  const keys = await Promise.all(
    [...uuids, other].map(projectId =>
      createKey(tx, COMMAND_LINE, { projectId, name: 'bench', limit: NO_LIMIT }),
    ),
  )
  await insertChannels(tx, uuids, channels)
  await Promise.all(uuids.map(uuid => insertWebhooks(tx, uuid, { endpoints, hookUrl })))
  const cookies: string[] = []
  while (cookies.length < Math.max(organizations.length, Math.ceil(sockets / PER_ACCOUNT)))
    cookies.push(await makeViewer(tx, organizations[cookies.length % organizations.length] ?? ''))
  return {
    shape,
    databaseUrl,
    projects: uuids.map((uuid, nth) => ({ uuid, token: keys[nth]?.token ?? '' })),
    other: keys.at(-1)?.token ?? '',
    cookies,
  }
}

async function insertChannels(tx: Tx, projectIds: string[], channels: number): Promise<void> {
  await tx`
    insert into channels (project_id, id, public_id, slug, name, created_at)
    select p.id, gen_random_uuid(), 'chn_bench_' || c.slug, c.slug, c.slug, now()
    from unnest(${toArray(projectIds)}::uuid[]) as p (id),
      (select 'channel-' || n from generate_series(0, ${channels}::int - 1) as g (n) union all select ${WATCHED})
        as c (slug)
    on conflict (project_id, slug) do nothing
  `
}

async function insertWebhooks(
  tx: Tx,
  projectId: string,
  { endpoints, hookUrl }: { endpoints: number; hookUrl: string },
): Promise<void> {
  const secrets = testSecrets()
  const hooks = Array.from({ length: endpoints }, (_, nth) => {
    const { uuid } = newId('whk')
    return {
      uuid,
      url: secrets.seal(`${hookUrl}/${nth}`, toSealedCell('url', uuid)),
      secret: secrets.seal(newSigningSecret(), toSealedCell('secret', uuid)),
    }
  })
  await tx`
    with made as (
      insert into webhooks (project_id, id, name, url, host, preset, has_all_channels, secret)
      select ${projectId}, w.id, 'bench', w.url, '127.0.0.1', 'standard', false, w.secret
      from unnest(
        ${toArray(hooks.map(({ uuid }) => uuid))}::uuid[], ${toArray(hooks.map(({ url }) => url))}::text[],
        ${toArray(hooks.map(({ secret }) => secret))}::text[]
      ) as w (id, url, secret)
      returning id
    )
    insert into webhook_channels (project_id, webhook_id, channel_id)
    select c.project_id, made.id, c.id
    from made
      join channels c on c.project_id = ${projectId} and c.slug = ${WATCHED}
  `
}
