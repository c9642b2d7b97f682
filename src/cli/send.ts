import type { EventInput } from '../events/schema.ts'
import { toParts } from '../config/values.ts'
import { command, UsageError } from './command.ts'
import { isRawNumber, parseExact } from '../http/exact-json.ts'
import { createApiClient } from './login.ts'

export const send = command({
  name: 'send',
  description:
    'Send an event. Requires TIDINGS_API_KEY or `tidings login`. TIDINGS_URL is http://localhost:3000 by default.',
  examples: [
    "tidings send 'New payment' --channel payments --icon 💰",
    'tidings send \'Backup failed\' --channel ops --description "$(tail -5 backup.log)" --tags backup,disk',
    'tidings send \'Signed up\' --channel users --user user_123 --metadata \'{"plan": "pro"}\' --no-notify',
  ],
  args: {
    title: { type: 'positional', required: true, description: 'Title of the event' },
    channel: {
      type: 'string',
      required: true,
      description: 'Name of the channel; created if it does not exist',
    },
    description: { type: 'string', description: 'Description of the event' },
    icon: { type: 'string', description: 'An emoji' },
    tags: { type: 'string', description: 'Tags, separated by commas' },
    metadata: { type: 'string', description: 'A JSON object' },
    user: { type: 'string', description: 'A user_id or an alias' },
    notify: {
      type: 'boolean',
      default: true,
      description: 'Send push notifications',
      negativeDescription: 'Send no push notifications',
    },
    source: { type: 'string', default: 'cli', description: 'Source of the event' },
    key: {
      type: 'string',
      description: 'Idempotency key: running the command again with it sends no second event',
    },
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
    return { json: sent, text: `Sent ${sent.id} to ${sent.channelName} (seq ${sent.seq})` }
  },
})

export const identify = command({
  name: 'identify',
  description:
    'Create or update a user. Requires TIDINGS_API_KEY or `tidings login`. TIDINGS_URL is http://localhost:3000 by default.',
  examples: [
    'tidings identify user_123 --aliases ada@example.com,ada',
    'tidings identify user_123 --properties \'{"plan": "pro"}\'',
  ],
  args: {
    user_id: { type: 'positional', required: true, description: 'Id of the user in your system' },
    properties: {
      type: 'string',
      description: 'A JSON object that replaces the stored properties',
    },
    aliases: { type: 'string', description: 'Aliases, separated by commas' },
  },
  async run(args) {
    const identified = await createApiClient().identify({
      user_id: args.user_id,
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

/** Parses the text of an option as a JSON object. Throws a `UsageError` for anything else. */
function parseObject(option: string, text: string): Record<string, unknown> {
  try {
    const { value } = parseExact(text)
    if (
      typeof value === 'object' &&
      value !== null &&
      !Array.isArray(value) &&
      !isRawNumber(value)
    ) {
      return value as Record<string, unknown>
    }
  } catch {
    // Text that is not JSON gets the same error.
  }
  throw new UsageError(`--${option} must be a JSON object, like '{"plan": "pro"}'.`)
}
