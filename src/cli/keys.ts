import { Name, toName } from '../access/guard/schema.ts'
import { listProjects, type ProjectInfo } from '../access/organizations/projects.ts'
import { COMMAND_LINE } from '../access/audit/audit.ts'
import { toParts } from '../base/config/values.ts'
import type { Queryable } from '../database/sql.ts'
import { findIssues } from '../http/rules.ts'
import { ensureFirstProject } from '../server/bootstrap.ts'
import { createKey, listKeys, revokeKey, rotateKey } from '../access/keys/keys.ts'
import {
  DEFAULT_SCOPES,
  MAX_RATE_LIMIT,
  SCOPES,
  type ApiKey,
  type Scope,
} from '../access/keys/schema.ts'
import { command, commandGroup, UsageError } from './command.ts'
import { DATA_DIR, withDatabase } from './environment.ts'

const project = {
  type: 'string',
  description: 'Name or id of the project; required if there are several',
} as const
const id = { type: 'positional', required: true, description: 'Id of the key' } as const

const create = command({
  name: 'create',
  description: 'Create an API key. The key is shown only once.',
  examples: [
    'tidings keys create --name ci',
    'tidings keys create --name billing --limit 1000 --scopes events:write,identities:write',
    'KEY=$(tidings keys create --json | jq -r .key)',
  ],
  args: {
    ...DATA_DIR,
    project,
    name: { type: 'string', default: 'API key', description: 'Name of the key' },
    limit: { type: 'string', default: '100', description: 'Requests per 60 seconds' },
    scopes: {
      type: 'string',
      default: DEFAULT_SCOPES.join(),
      description: `Scopes, separated by commas: some of ${SCOPES.join(', ')}`,
    },
    expires: { type: 'string', description: 'Expiry date, like 2027-01-31' },
  },
  async run(args) {
    const keyName = parseName(args.name)
    const limit = toWholeNumber('limit', args.limit, { min: 1, max: MAX_RATE_LIMIT })
    const scopes = toScopes(args.scopes)
    const expiresAt = args.expires === undefined ? undefined : toDate('expires', args.expires)
    return withDatabase(args, async sql => {
      await sql.begin(ensureFirstProject)
      const { uuid, id: projectId, name } = await getProject(sql, args.project)
      const { token, ...made } = await sql.begin(tx =>
        createKey(tx, COMMAND_LINE, {
          projectId: uuid,
          name: keyName,
          limit,
          scopes,
          ...(expiresAt && { expiresAt }),
        }),
      )
      return {
        json: {
          key: token,
          id: made.id,
          name: keyName,
          project: { id: projectId, name },
          limit,
          scopes,
        },
        text: `${token}\n\nThis key is shown only once. It gives access to the project ${JSON.stringify(name)}.`,
      }
    })
  },
})

const list = command({
  name: 'list',
  description: 'List the API keys of a project.',
  examples: ['tidings keys list', "tidings keys list --project 'My project' --json"],
  args: { ...DATA_DIR, project },
  run: args =>
    withDatabase(args, async sql => {
      const keys = await listAllKeys(sql, (await getProject(sql, args.project)).uuid)
      const lines = keys.map(
        key =>
          `${key.id}  tdg_…${key.lastFour}  ${toState(key).padEnd(8)} ${key.limit}/min  ` +
          `${key.lastUsedAt ? `last used ${key.lastUsedAt}` : 'never used'}  ${key.name}`,
      )
      return {
        json: keys,
        text: lines.join('\n') || 'No keys yet. Create one with `tidings keys create`.',
      }
    }),
})

const revoke = command({
  name: 'revoke',
  description: 'Revoke an API key. It stops working at once.',
  examples: ['tidings keys revoke key_01kadz5p6vf2w8y3m4n5q6r7s8'],
  args: { ...DATA_DIR, id, project },
  run: args =>
    withDatabase(args, async sql => {
      const { uuid: projectId } = await getProject(sql, args.project)
      await sql.begin(tx => revokeKey(tx, COMMAND_LINE, { projectId, id: args.id }))
      return { json: { id: args.id, revoked: true }, text: `Revoked ${args.id}` }
    }),
})

const rotate = command({
  name: 'rotate',
  description:
    'Replace an API key: create a new one with the same settings. The old key keeps working for some hours.',
  examples: ['tidings keys rotate key_01kadz5p6vf2w8y3m4n5q6r7s8 --overlap 48'],
  args: {
    ...DATA_DIR,
    id,
    project,
    overlap: {
      type: 'string',
      default: '24',
      description: 'Hours until the old key stops working',
    },
  },
  run: args => {
    const overlapHours = toWholeNumber('overlap', args.overlap, { min: 0, max: 24 * 365 })
    return withDatabase(args, async sql => {
      const { uuid: projectId } = await getProject(sql, args.project)
      const made = await sql.begin(tx =>
        rotateKey(tx, COMMAND_LINE, { projectId, id: args.id, overlapHours }),
      )
      return {
        json: { key: made.token, id: made.id, replaces: args.id, overlapHours },
        text: `${made.token}\n\nThe old key stops working in ${overlapHours} hours.`,
      }
    })
  },
})

export const keys = commandGroup({
  name: 'keys',
  description: 'Create, list, rotate and revoke API keys.',
  examples: ['tidings keys create --name ci', 'tidings keys list'],
  commands: { create, list, rotate, revoke },
})

async function getProject(sql: Queryable, wanted: string | undefined): Promise<ProjectInfo> {
  const projects = await listProjects(sql)
  const found =
    wanted === undefined
      ? projects
      : projects.filter(({ id, name }) => id === wanted || name === wanted)
  const [only] = found
  if (only && found.length === 1) return only
  const names = projects
    .map(({ id, name, organization }) => `\n  ${id}  ${name} (${organization})`)
    .join('')
  if (projects.length === 0) {
    throw new UsageError('There is no project yet. `tidings keys create` creates the first one.')
  }
  const problem =
    found.length === 0 ? `No project matches ${JSON.stringify(wanted)}.` : 'Several projects match.'
  throw new UsageError(`${problem} Choose one with --project:${names}`)
}

async function listAllKeys(sql: Queryable, projectId: string): Promise<ApiKey[]> {
  const keys: ApiKey[] = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const page = await listKeys(sql, projectId, { limit: 100, ...(cursor && { cursor }) })
    keys.push(...page.items)
    cursor = page.nextCursor
  }
  return keys
}

function parseName(text: string): string {
  const [issue] = findIssues(Name, text) ?? []
  if (issue) throw new UsageError(`--name: ${issue.message}`)
  return toName(text)
}

function toState({ revokedAt, expiresAt }: ApiKey): string {
  if (revokedAt) return 'revoked'
  return expiresAt && Date.parse(expiresAt) <= Date.now() ? 'expired' : 'active'
}

function toWholeNumber(
  option: string,
  text: string,
  { min, max }: { min: number; max: number },
): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= max) return value
  throw new UsageError(`--${option} must be a whole number from ${min} to ${max}.`)
}

function toScopes(text: string): Scope[] {
  const known = SCOPES.join(', ')
  const names = toParts(text)
  if (names.length === 0) throw new UsageError(`--scopes must list at least one of ${known}.`)
  return names.map(name => {
    const scope = SCOPES.find(one => one === name)
    if (!scope)
      throw new UsageError(`Unknown scope ${JSON.stringify(name)}. --scopes accepts ${known}.`)
    return scope
  })
}

function toDate(option: string, text: string): Date {
  const date = new Date(text)
  if (!(date.getTime() > Date.now()))
    throw new UsageError(`--${option} must be a date in the future, like 2027-01-31.`)
  return date
}
