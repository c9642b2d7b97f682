import type { EventInput } from '../events/schema.ts'
import { toParts } from '../config/values.ts'
import { createApiClient, parseObject } from './api.ts'
import { command } from './command.ts'

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
