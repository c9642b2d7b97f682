import type { LineProcess } from './feed-process.ts'
import type { Line } from './table.ts'

/** Messages per second, and ms of processor time per message, of the sender and of Postgres. */
export type Figures = Record<'perSecond' | 'processorMs' | 'postgresMs', number>

/** Warms a sender up and measures it. Throws unless each message arrives once. */
export async function measureSending(
  sender: LineProcess,
  receiver: LineProcess | undefined,
  counts: { warmUp: number; messages: number },
): Promise<Figures> {
  try {
    await send(sender, receiver, counts.warmUp)
    return await send(sender, receiver, counts.messages)
  } finally {
    await sender.stop()
  }
}

async function send(sender: LineProcess, receiver: LineProcess | undefined, count: number) {
  sender.say(String(count))
  const figures = JSON.parse(await sender.hear()) as Figures
  if (!receiver) return figures
  receiver.say('count')
  const answer = await receiver.hear()
  const { requests, messages } = JSON.parse(answer) as Record<string, number>
  if (requests !== count || messages !== count) {
    throw new Error(`${count} messages were sent, and the receiver reports ${answer}`)
  }
  return figures
}

/** Returns the figures of a sender beside those of a reference. */
export function toLines(
  { subject, what, reference }: Pick<Line, 'subject' | 'what' | 'reference'>,
  { tidings, bare }: Record<'tidings' | 'bare', Figures>,
): Line[] {
  return [
    {
      subject,
      what,
      ours: tidings.perSecond,
      reference,
      theirs: bare.perSecond,
      better: 'more',
    },
    {
      subject,
      what: 'ms of processor time per message, in the sending process',
      ours: tidings.processorMs,
      reference,
      theirs: bare.processorMs,
      better: 'less',
    },
    {
      subject,
      what: 'ms of processor time per message, with Postgres',
      ours: tidings.processorMs + tidings.postgresMs,
      reference,
      theirs: bare.processorMs + bare.postgresMs,
      better: 'less',
    },
  ]
}
