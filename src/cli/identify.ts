import { toParts } from '../config/values.ts'
import { createApiClient, parseObject } from './api.ts'
import { command } from './command.ts'

export const identify = command({
  name: 'identify',
  description:
    'Create or update a user. Uses TIDINGS_URL (http://localhost:3000) and TIDINGS_API_KEY.',
  examples: [
    'tidings identify user_123 --aliases ada@example.com,ada',
    'tidings identify user_123 --properties \'{"plan": "pro"}\'',
  ],
  args: {
    userId: { type: 'positional', required: true, description: 'Your own id of the user' },
    properties: { type: 'string', description: 'A JSON object that replaces the stored one' },
    aliases: { type: 'string', description: 'Other names, separated by commas' },
  },
  async run(args) {
    const identified = await createApiClient().identify({
      user_id: args.userId,
      ...(args.properties !== undefined && {
        properties: parseObject('properties', args.properties),
      }),
      ...(args.aliases !== undefined && { aliases: toParts(args.aliases) }),
    })
    const { created, failed = [] } = identified.aliases
    const lines = [
      `Identified ${identified.userId}`,
      ...created.map(alias => `  + ${alias}`),
      ...failed.map(({ alias, reason }) => `  - ${alias}: ${reason}`),
    ]
    return { json: identified, text: lines.join('\n') }
  },
})
