import { RUNTIME } from '../base/platform.ts'
import { VERSION } from '../base/version.ts'
import { readBuiltText } from './built-text.ts'
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

async function readSbom(): Promise<{ json: unknown; text: string }> {
  const text = await readBuiltText('.cdx.json')
  return { json: JSON.parse(text), text: text.trimEnd() }
}
