import { findSignatureProblem } from '../delivery/webhooks/signing.ts'
import { command, commandGroup, UsageError } from './command.ts'

const MAX_BYTES = 8 * 1024 * 1024

const verify = command({
  name: 'verify',
  description:
    'Verify the signature of a webhook that you received. Reads the unchanged body from standard input.',
  examples: [
    'tidings webhook verify --id msg_… --timestamp 1767322800 --signature v1,… < body.json',
    'TIDINGS_WEBHOOK_SECRET=whsec_… tidings webhook verify --id "$ID" --timestamp "$AT" --signature "$SIG" < body.json',
  ],
  args: {
    id: { type: 'string', required: true, description: 'Value of the header webhook-id' },
    timestamp: {
      type: 'string',
      required: true,
      description: 'Value of the header webhook-timestamp',
    },
    signature: {
      type: 'string',
      required: true,
      description: 'Value of the header webhook-signature',
    },
    secret: {
      type: 'string',
      description:
        'Secret of the webhook (whsec_…); prefer TIDINGS_WEBHOOK_SECRET, which other users cannot see',
    },
  },
  async run({ id, timestamp, signature, secret = process.env['TIDINGS_WEBHOOK_SECRET'] }) {
    if (!secret) throw new UsageError('Set TIDINGS_WEBHOOK_SECRET to the secret of the webhook.')
    const body = await readInput()
    const problem = findSignatureProblem({ body, id, timestamp, signature }, secret, Date.now())
    return {
      json: { isGenuine: problem === undefined, problem: problem ?? null },
      text: problem ?? 'The signature is valid.',
      hasFailed: problem !== undefined,
    }
  },
})

export const webhook = commandGroup({
  name: 'webhook',
  description: 'Verify webhooks that you received.',
  examples: [
    'tidings webhook verify --id msg_… --timestamp 1767322800 --signature v1,… < body.json',
  ],
  commands: { verify },
})

/** Reads all of standard input as UTF-8. Throws a `UsageError` for invalid UTF-8. */
async function readInput(): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of process.stdin) {
    chunks.push(chunk as Buffer) // Streams without an encoding yield buffers only.
    bytes += chunks.at(-1)?.length ?? 0
    if (bytes > MAX_BYTES) throw new UsageError(`The body has more than ${MAX_BYTES} bytes.`)
  }
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(chunks))
  } catch {
    throw new UsageError('The body is not valid UTF-8. The body of every webhook is.')
  }
}
