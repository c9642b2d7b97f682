// Runs `src/main.ts` in a process in which egress and the driver of Postgres alone open connections
// and look names up. Everything else that can is replaced by a function that throws, and writes a
// line `sealed: <its name>`. Before the program, the functions are tried once, from the outside.
import { createRequire } from 'node:module'

const ALLOWED = /\/src\/http\/egress\/|\/src\/database\/primary\.ts|\/node_modules\/postgres\//
const require = createRequire(import.meta.url)
const DNS = ['lookup', 'resolve', 'resolve4', 'resolve6', 'resolveAny', 'resolveTxt', 'reverse']
const MODULES: Record<string, readonly string[]> = {
  'node:net': ['connect', 'createConnection'],
  'node:tls': ['connect'],
  'node:http': ['request', 'get'],
  'node:https': ['request', 'get'],
  'node:http2': ['connect'],
  'node:dgram': ['createSocket'],
  'node:dns': DNS,
  'node:dns/promises': DNS,
}
Error.stackTraceLimit = 100

type Functions = Record<string, (...given: unknown[]) => unknown>
const { Socket } = require('node:net') as { Socket: { prototype: Functions } }
const owners: [string, Functions, readonly string[]][] = [
  ['', globalThis as unknown as Functions, ['fetch', 'WebSocket', 'EventSource']],
  ['Bun.', Bun as unknown as Functions, ['connect']],
  ['Socket.', Socket.prototype, ['connect']],
  ...Object.entries(MODULES).map(
    ([name, names]) => [`${name}.`, require(name) as Functions, names] as (typeof owners)[number],
  ),
]
for (const [owner, functions, names] of owners) {
  for (const name of names.filter(one => functions[one] !== undefined)) {
    seal(functions, name, `${owner}${name}`)
    try {
      functions[name]?.()
    } catch {
      // The line is written.
    }
  }
}
process.stderr.write('sealed: everything\n')

// The libraries of the build, with a text that names a URL.
const url = process.env['TRAP_URL'] ?? ''
const { drawIcons } = await import('../../../src/dashboard/icons.ts')
drawIcons(
  `<svg xmlns="http://www.w3.org/2000/svg" width="32" height="32"><rect width="32" height="32"/><image href="${url}/svg" width="32" height="32"/></svg>`,
)
const { renderMarkdown } = await import('../../../src/dashboard/docs/markdown.ts')
renderMarkdown(
  { name: 'page', text: `# A page\n\n![An image](${url}/markdown)\n\n<${url}/link>` },
  { toImageUrl: file => file },
)
await import('../../../src/main.ts')

function seal(functions: Functions, name: string, label: string): void {
  const own = functions[name]
  if (own === undefined) return
  functions[name] = function (this: unknown, ...given: unknown[]): unknown {
    if (ALLOWED.test(new Error().stack ?? '')) return own.apply(this, given)
    process.stderr.write(`sealed: ${label}\n`)
    throw new Error(`${label} is sealed`)
  }
}
