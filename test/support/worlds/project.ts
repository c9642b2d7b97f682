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

export const JSON_TYPE = { 'content-type': 'application/json' }

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

/** Returns functions that request a server with a key. Answers of /v1 are checked. */
export function createRequests(url: string, key: string) {
  const request = async (path: string, options: RequestOptions = {}) => {
    const answered = await sendRequest(url + path, { authorization: `Bearer ${key}` }, options)
    if (path.startsWith('/v1/'))
      await checkDeclared({ url: url + path, method: options.method ?? 'GET', ...answered })
    return answered
  }
  return {
    request,
    post: (path: string, json: unknown, headers: Record<string, string> = {}) =>
      request(path, { method: 'POST', json, headers }),
    get: (path: string) => request(path),
  }
}

/** Sends a request with the headers of its sender. Follows no redirect. */
export async function sendRequest(
  url: string,
  sender: Readonly<Record<string, string>>,
  { method = 'GET', json, body, headers }: RequestOptions,
): Promise<Answered> {
  const sent = json === undefined ? body : JSON.stringify(json)
  const response = await fetch(url, {
    method,
    redirect: 'manual',
    headers: { ...sender, ...(json !== undefined && JSON_TYPE), ...headers },
    ...(sent !== undefined && { body: sent }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: parse(text) }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
