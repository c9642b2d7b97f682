import type { TSchema } from '@sinclair/typebox'
import type { Action } from '../../src/access/guard/permissions.ts'
import { toManagementDocument } from '../../src/http/openapi.ts'
import { listApiFeatures } from '../../src/server/features.ts'
import { createSchemaCheck } from './conformance.ts'

/** The declaration of a route of /api. */
export interface ApiContract {
  method: string
  /** The path with parameters as `:name`. */
  path: string
  /** Undefined for a route without a guard; a test refuses those. */
  action: Action
  body: (TSchema & { properties?: Record<string, TSchema> }) | undefined
  query: (TSchema & { properties: Record<string, TSchema> }) | undefined
}

// Without dependencies the features cannot run, but they declare their routes.
const routes = listApiFeatures({ providers: [] } as never).flatMap(feature => feature.routes)

/** Every route of /api. */
export const API: readonly ApiContract[] = routes.map(({ method, path, hooks }) => ({
  method,
  path,
  action: hooks.detail['x-action'],
  body: hooks.standaloneValidator?.[0].body,
  query: hooks.query,
}))

const document = toManagementDocument({ listRoutes: () => routes, baseUrl: 'http://localhost' })
const findProblem = createSchemaCheck(document)
/** The routes with patterns of their paths. Those with the fewest parameters come first. */
const patterns = API.map(contract => ({ contract, pattern: toPattern(contract.path) })).toSorted(
  (a, b) => a.contract.path.split(':').length - b.contract.path.split(':').length,
)

/** Throws if the document of /api does not declare an answer. */
export function checkContract(method: string, path: string, status: number, body: unknown): void {
  const pathname = path.split('?')[0] ?? ''
  const found = patterns.find(
    ({ contract, pattern }) => contract.method === method && pattern.test(pathname),
  )?.contract
  if (!found) return
  const template = found.path.replace(/:(\w+)/g, '{$1}')
  const pointer = ['paths', template, method.toLowerCase(), 'responses', String(status)]
  const operation = (document as any).paths[template][method.toLowerCase()]
  if (!operation.responses[status]) throw new Error(`${method} ${path} answered ${status}`)
  // A file is no envelope.
  if (!operation.responses[status].content['application/json']) return
  const problem = findProblem(body, [...pointer, 'content', 'application/json', 'schema'])
  if (problem !== undefined) throw new Error(`${method} ${path} breaks its contract: ${problem}`)
}

function toPattern(path: string): RegExp {
  return new RegExp(`^${path.replace(/:\w+/g, '[^/]+')}$`)
}
