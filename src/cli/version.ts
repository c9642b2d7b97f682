import { RUNTIME } from '../platform.ts'
import { VERSION } from '../version.ts'
import { command } from './command.ts'

export const version = command({
  name: 'version',
  description: 'Say which version this is.',
  examples: ['tidings version', 'tidings version --json'],
  args: {},
  async run() {
    return {
      json: { version: VERSION, runtime: RUNTIME },
      text: `tidings ${VERSION} on ${RUNTIME}`,
    }
  },
})
