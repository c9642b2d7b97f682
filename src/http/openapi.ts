import { FAILURE_CODES } from '../errors.ts'
import { toComponents } from './json-schema.ts'
import { TAGS, toOperation, type Contract } from './operation.ts'
import { CODES } from './rules.ts'

const DESCRIPTION = `Applications post events with one call, and identify the users to whom they belong. What is answered 201 is
stored durably, once, and in order.

Every request carries \`Authorization: Bearer <API_KEY>\`. A key belongs to one project and may make 100 requests in
60 seconds unless its limit says otherwise. The window begins with the key's first request.

Lengths of text count in code points. No text may contain U+0000 or half of a surrogate pair.

Every answer has a \`requestId\`, but for 401. A path that is not listed here is answered 404, a method that its path does
not have 405 with \`Allow\`, both before authentication and like the other failures: with a \`code\`, one of
${toList(FAILURE_CODES)}.
\`details[].code\` of a 400 is one of ${toList(CODES)}.`

/** The OpenAPI 3.1 document of all contracts. The schemas are those that validate at run time. */
export function toDocument(
  contracts: readonly Contract[],
  baseUrl: string,
): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const contract of contracts) {
    const path = contract.path.replace(/:(\w+)/g, '{$1}')
    const item = (paths[path] ??= {})
    item[contract.method.toLowerCase()] = toOperation(contract)
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Tidings',
      version: '1.0.0',
      summary: 'Know the moment it happens.',
      description: DESCRIPTION,
      license: { name: 'AGPL-3.0', identifier: 'AGPL-3.0-only' },
    },
    servers: [{ url: baseUrl }],
    security: [{ apiKey: [] }],
    tags: [...new Set(contracts.map(({ tag }) => tag))].map(name => ({
      name,
      description: TAGS[name],
    })),
    paths,
    components: {
      securitySchemes: {
        apiKey: { type: 'http', scheme: 'bearer', description: 'An API key: `tdg_…`.' },
      },
      schemas: toComponents(),
    },
  }
}

function toList(codes: readonly string[]): string {
  return codes.map(code => `\`${code}\``).join(', ')
}
