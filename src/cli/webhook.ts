import { defineCommand } from 'citty'
import { findSignatureProblem } from '../webhooks/signing.ts'
import { command, UsageError, withExamples } from './command.ts'

const MAX_BYTES = 8 * 1024 * 1024

const verify = command({
  name: 'verify',
  description:
    'Say whether a webhook that you received is genuine, and why not. Its body comes on standard input, byte for byte.',
  examples: [
    'tidings webhook verify --id msg_… --timestamp 1767322800 --signature v1,… < body.json',
    'TIDINGS_WEBHOOK_SECRET=whsec_… tidings webhook verify --id "$ID" --timestamp "$AT" --signature "$SIG" < body.json',
  ],
  args: {
    id: { type: 'string', required: true, description: 'The header webhook-id' },
    timestamp: { type: 'string', required: true, description: 'The header webhook-timestamp' },
    signature: { type: 'string', required: true, description: 'The header webhook-signature' },
    secret: {
      type: 'string',
      description: 'whsec_…; better in TIDINGS_WEBHOOK_SECRET, which other users cannot see',
    },
  },
  async run({ id, timestamp, signature, secret = process.env['TIDINGS_WEBHOOK_SECRET'] }) {
    if (!secret) throw new UsageError('Set TIDINGS_WEBHOOK_SECRET to the secret of the webhook')
    const body = await readInput()
    const problem = findSignatureProblem({ body, id, timestamp, signature }, secret, Date.now())
    return {
      json: { isGenuine: problem === undefined, problem: problem ?? null },
      text: problem ?? 'Genuine',
      hasFailed: problem !== undefined,
    }
  },
})

export const webhook = withExamples(
  defineCommand({
    meta: { name: 'webhook', description: 'Tools for receivers of webhooks.' },
    subCommands: { verify },
  }),
  ['tidings webhook verify --id msg_… --timestamp 1767322800 --signature v1,… < body.json'],
)

/** Standard input, whole, and as text only if that loses nothing. */
async function readInput(): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer) // Without an encoding, streams give nothing else.
    bytes += chunks.at(-1)?.length ?? 0
    if (bytes > MAX_BYTES) throw new UsageError(`The body has more than ${MAX_BYTES} bytes`)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks))
  } catch {
    throw new UsageError('The body is not UTF-8, as every webhook is')
  }
}
