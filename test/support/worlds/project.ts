import { createOrganization } from '../../../src/access/organizations/organizations.ts'
import { createProject } from '../../../src/access/organizations/projects.ts'
import { SCOPES } from '../../../src/access/keys/schema.ts'
import type { NewKey } from '../../../src/access/keys/keys.ts'
import { checkDeclared } from '../conformance.ts'
import { createKey } from './keys.ts'
import type { Booted } from '../servers/server.ts'

/** A new project for one test, with a key. */
export interface TestProject {
  /** The uuid. */
  id: string
  key: string
  /** The id of the key. */
  keyId: string
  /** Requests `path` with the key; `json` is the body. */
  request(path: string, options?: RequestOptions): Promise<Answered>
  post(path: string, json: unknown, headers?: Record<string, string>): Promise<Answered>
  get(path: string): Promise<Answered>
}

export interface RequestOptions {
  method?: string
  json?: unknown
  body?: string | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
}

export interface Answered {
  status: number
  headers: Headers
  text: string
  // `any`: tests check every field that they read.
  body: any
}

export async function newProject(
  { sql, url }: Pick<Booted, 'sql' | 'url'>,
  options: Partial<Omit<NewKey, 'projectId'>> = {},
): Promise<TestProject> {
  const id = await sql.begin(async tx =>
    createProject(tx, {
      organizationId: await createOrganization(tx, 'Test organization'),
      name: 'Test project',
    }),
  )
  const key = await createKey(sql, {
    projectId: id,
    name: 'test',
    limit: 1_000_000,
    scopes: SCOPES,
    ...options,
  })
  return { id, key: key.token, keyId: key.id, ...createRequests(url, key.token) }
}

/** Returns functions that request a server with a key. */
export function createRequests(url: string, key: string) {
  const request = (path: string, options: RequestOptions = {}) =>
    send(`${url}${path}`, key, options)
  return {
    request,
    post: (path: string, json: unknown, headers: Record<string, string> = {}) =>
      request(path, { method: 'POST', json, headers }),
    get: (path: string) => request(path),
  }
}

async function send(url: string, key: string, options: RequestOptions): Promise<Answered> {
  const { method = 'GET', json, headers = {} } = options
  const body = json === undefined ? options.body : JSON.stringify(json)
  const sent = {
    method,
    headers: {
      authorization: `Bearer ${key}`,
      ...(json !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body }),
  }
  const response = await fetch(url, sent)
  const text = await response.text()
  const { status, headers: answered } = response
  if (new URL(url).pathname.startsWith('/v1/')) {
    await checkDeclared({ url, method, status, headers: answered, text })
  }
  return { status, headers: answered, text, body: parse(text) }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
