import { closeCluster, cloneDatabase } from '../support/servers/postgres.ts'
import { startLineProcess, type LineProcess } from './feed-process.ts'
import { findNode, installPeers } from './peers.ts'
import { interleaveFigures, toShare, type Line } from './table.ts'

/** Messages per second, and ms of processor time per message, of the sender and of Postgres. */
type Figures = Record<'perSecond' | 'processorMs' | 'postgresMs', number>

interface Comparison {
  subject: 'webhooks' | 'push'
  what: string
  reference: string
  /** The number of messages. A twentieth to a tenth of them warm the sender up. */
  messages: number
  warmUp: number
}

/** Compares our complete webhook delivery with a client that only signs and sends. */
export function compareWebhooks(): Promise<Line[]> {
  return compare({
    subject: 'webhooks',
    what: 'deliveries/s, 32 at a time: claimed, signed, sent and recorded',
    reference: 'node:http, signed and sent',
    messages: toShare(8_000),
    warmUp: toShare(1_000),
  })
}

/** Compares our complete push delivery with web-push alone. */
export function comparePush(): Promise<Line[]> {
  return compare({
    subject: 'push',
    what: 'pushes/s over HTTPS, 32 at a time: claimed, encrypted, sent and recorded',
    reference: 'web-push, encrypted, signed and sent',
    messages: toShare(4_000),
    warmUp: toShare(400),
  })
}

async function compare({ subject, messages, warmUp, ...names }: Comparison): Promise<Line[]> {
  installPeers()
  const receiver = await startLineProcess('deliveries-receiver.ts', [subject])
  const address = receiver.ready.slice('READY '.length)
  const measure = async (sender: LineProcess): Promise<Figures> => {
    try {
      await send(sender, receiver, warmUp)
      return await send(sender, receiver, messages)
    } finally {
      await sender.stop()
    }
  }
  try {
    const { tidings, bare } = await interleaveFigures({
      tidings: async () =>
        measure(
          await startLineProcess('deliveries-ours.ts', [subject, address, await cloneDatabase()]),
        ),
      bare: async () =>
        measure(await startLineProcess('deliveries-bare.ts', [subject, address], findNode())),
    })
    const withPostgres = (figures: Figures) => figures.processorMs + figures.postgresMs
    const line = (what: string, better: Line['better'], read: (figures: Figures) => number) => {
      return { ...names, subject, what, ours: read(tidings), theirs: read(bare), better }
    }
    return [
      line(names.what, 'more', one => one.perSecond),
      line('ms of processor time per message, with Postgres', 'less', withPostgres),
    ]
  } finally {
    await receiver.stop()
    await closeCluster()
  }
}

/** Sends messages. Throws unless each of them arrives once at the receiver. */
async function send(sender: LineProcess, receiver: LineProcess, count: number) {
  sender.say(String(count))
  const figures = JSON.parse(await sender.hear()) as Figures
  receiver.say('count')
  const answer = await receiver.hear()
  const { requests, messages } = JSON.parse(answer) as Record<string, number>
  if (requests !== count || messages !== count) {
    throw new Error(`${count} messages were sent, and the receiver reports ${answer}`)
  }
  return figures
}
