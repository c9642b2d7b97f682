import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findEmbeddedFile, RUNTIME } from '../base/platform.ts'
import { VERSION } from '../base/version.ts'
import { command } from './command.ts'

/** The path without extension of the texts that `bun run compile` leaves in a checkout. */
const BESIDE = join(import.meta.dirname, '../../dist/tidings')

export const version = command({
  name: 'version',
  description: 'Print the version and the runtime, or list what the executable contains.',
  examples: [
    'tidings version',
    'tidings version --json',
    'tidings version --sbom > tidings.cdx.json',
  ],
  args: {
    sbom: { type: 'boolean', description: 'Print the SBOM (CycloneDX, JSON)', default: false },
  },
  async run({ sbom }) {
    if (sbom) return readSbom()
    return {
      json: { version: VERSION, runtime: RUNTIME },
      text: `tidings ${VERSION} on ${RUNTIME}`,
    }
  },
})

async function readSbom(): Promise<{ json: unknown; text: string }> {
  const text = await readBuiltText('.cdx.json')
  return { json: JSON.parse(text), text: text.trimEnd() }
}

export const licences = command({
  name: 'licences',
  description: 'Print the licence of Tidings, and the licences of the parts of others inside.',
  examples: ['tidings licences | less'],
  args: {},
  async run() {
    const text = await readBuiltText('.licences.txt')
    return { json: { text }, text: text.trimEnd() }
  },
})

/**
 * Returns a text that was made for the executable, from inside of it or from the checkout. Throws
 * when the checkout was never compiled.
 */
async function readBuiltText(extension: string): Promise<string> {
  const embedded = await findEmbeddedFile(extension)?.text()
  if (embedded !== undefined) return embedded
  try {
    return readFileSync(`${BESIDE}${extension}`, 'utf8')
  } catch {
    throw new Error('This checkout has not been compiled. Run `bun run compile` first.')
  }
}
