import { closeCluster, cloneDatabase } from '../support/servers/postgres.ts'
import { startLineProcess, type LineProcess } from './feed-process.ts'
import { findNode, installPeers } from './peers.ts'
import { measureSending, toLines } from './sender-figures.ts'
import { interleaveFigures, toShare, type Line } from './table.ts'

const COUNTS = { warmUp: toShare(1_000), messages: toShare(8_000) }

/** Compares our complete webhook delivery with a client that only signs and sends. */
export async function compareWebhooks(): Promise<Line[]> {
  installPeers()
  const receiver = await startLineProcess('webhook-receiver.ts', [])
  const url = receiver.ready.slice('READY '.length)
  const measure = (sender: LineProcess) => measureSending(sender, receiver, COUNTS)
  try {
    const figures = await interleaveFigures({
      tidings: async () =>
        measure(await startLineProcess('webhooks-ours.ts', [await cloneDatabase(), url])),
      bare: async () => measure(await startLineProcess('webhooks-bare.ts', [url], findNode())),
    })
    return toLines(
      {
        subject: 'webhooks',
        what: 'deliveries/s, 32 at a time: claimed, signed, sent and recorded',
        reference: 'node:http, signed and sent',
      },
      figures,
    )
  } finally {
    await receiver.stop()
    await closeCluster()
  }
}
