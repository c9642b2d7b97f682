import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findEmbeddedFile, RUNTIME } from '../platform.ts'
import { VERSION } from '../version.ts'
import { command } from './command.ts'

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

/** The SBOM that `bun run compile` leaves beside the executable in a checkout. */
const BESIDE = join(import.meta.dirname, '../../dist/tidings.cdx.json')

async function readSbom(): Promise<{ json: unknown; text: string }> {
  const text = (await findEmbeddedFile('.cdx.json')?.text()) ?? readBuilt()
  return { json: JSON.parse(text), text: text.trimEnd() }
}

function readBuilt(): string {
  try {
    return readFileSync(BESIDE, 'utf8')
  } catch {
    throw new Error('This checkout has no SBOM. Make one with `bun run compile`.')
  }
}
