import type { EventInput } from '../events/schema.ts'
import { toParts } from '../config/values.ts'
import { command, UsageError } from './command.ts'
import { createClient, type Client } from '../client/client.ts'
import { isRawNumber, parseExact } from '../http/exact-json.ts'

export const send = command({
  name: 'send',
  description: 'Send an event. Uses TIDINGS_URL (http://localhost:3000) and TIDINGS_API_KEY.',
  examples: [
    "tidings send 'New payment' --channel payments --icon 💰",
    'tidings send \'Backup failed\' --channel ops --description "$(tail -5 backup.log)" --tags backup,disk',
    'tidings send \'Signed up\' --channel users --user user_123 --metadata \'{"plan": "pro"}\' --no-notify',
  ],
  args: {
    title: { type: 'positional', required: true, description: 'What happened' },
    channel: { type: 'string', required: true, description: 'Channel; created if absent' },
    description: { type: 'string', description: 'More about it' },
    icon: { type: 'string', description: 'An emoji' },
    tags: { type: 'string', description: 'Tags, separated by commas' },
    metadata: { type: 'string', description: 'A JSON object' },
    user: { type: 'string', description: 'A user_id or an alias' },
    notify: { type: 'boolean', default: true, description: 'Notify people on their devices' },
    source: { type: 'string', default: 'cli', description: 'Where the event comes from' },
    key: { type: 'string', description: 'Idempotency-Key: the same one sends the event once' },
  },
  async run(args) {
    const event: EventInput = {
      channelName: args.channel,
      title: args.title,
      notify: args.notify,
      source: args.source,
      ...(args.description !== undefined && { description: args.description }),
      ...(args.icon !== undefined && { icon: args.icon }),
      ...(args.tags !== undefined && { tags: toParts(args.tags) }),
      ...(args.metadata !== undefined && { metadata: parseObject('metadata', args.metadata) }),
      ...(args.user !== undefined && { userId: args.user }),
    }
    const options = args.key === undefined ? {} : { idempotencyKey: args.key }
    const sent = await createApiClient().events.create(event, options)
    return { json: sent, text: `Sent ${sent.id} to ${sent.channelName} as number ${sent.seq}` }
  },
})

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

/** The client of the server that TIDINGS_URL names, with the key in TIDINGS_API_KEY. */
function createApiClient(): Client {
  const { TIDINGS_URL: baseUrl = 'http://localhost:3000', TIDINGS_API_KEY: apiKey } = process.env
  if (!apiKey) {
    throw new UsageError('Set TIDINGS_API_KEY to an API key: `tidings keys create` makes one.')
  }
  if (!URL.canParse(baseUrl)) {
    throw new UsageError(`TIDINGS_URL must be a URL like http://localhost:3000: it is ${baseUrl}`)
  }
  return createClient({ baseUrl, apiKey })
}

/** The JSON object in an option's text. */
function parseObject(option: string, text: string): Record<string, unknown> {
  try {
    const value = parseExact(text)
    if (
      typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      !isRawNumber(value)
    ) {
      return value as Record<string, unknown> // Checked just now.
    }
  } catch {
    // Not JSON at all: the same answer.
  }
  throw new UsageError(`--${option} must be a JSON object, like '{"plan": "pro"}'`)
}
