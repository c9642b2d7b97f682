import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pack } from './pack.ts'

// Packs everything in app/ into the module built.ts, which the program carries on every runtime and in the binary.
const app = fileURLToPath(new URL('app/', import.meta.url))
const output = fileURLToPath(new URL('built.ts', import.meta.url))

const sources = new Map(
  readdirSync(app, { withFileTypes: true, recursive: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .map(path => [path.slice(app.length).replaceAll(sep, '/'), readFileSync(path)]),
)
const text = `// Made by \`bun run build:ui\` from the files of app/.
import type { PackedFile } from './pack.ts'

export const FILES: Readonly<Record<string, PackedFile>> = ${toSource(pack(sources))}
`
if (readCurrent() !== text) writeFileSync(output, text)

function toSource(files: object): string {
  // JSON leaves out what is undefined, but the type wants to see it.
  return JSON.stringify(files, (_, value: unknown) => value ?? null, 2).replaceAll(
    ': null',
    ': undefined',
  )
}

function readCurrent(): string | undefined {
  try {
    return readFileSync(output, 'utf8')
  } catch {
    return undefined // Never built before.
  }
}
