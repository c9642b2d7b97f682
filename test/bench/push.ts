import { closeCluster, cloneDatabase } from '../support/servers/postgres.ts'
import { startLineProcess, type LineProcess } from './feed-process.ts'
import { findNode, installPeers } from './peers.ts'
import { measureSending, toLines } from './sender-figures.ts'
import { interleaveFigures, toShare, type Line } from './table.ts'

const COUNTS = { warmUp: toShare(400), messages: toShare(4_000) }

/**
 * Compares our complete push delivery with web-push alone; prints the share of encryption in ours.
 */
export async function comparePush(): Promise<Line[]> {
  installPeers()
  const receiver = await startLineProcess('push-receiver.ts', [])
  const service = receiver.ready.slice('READY '.length)
  const measure = (sender: LineProcess) => measureSending(sender, receiver, COUNTS)
  try {
    const figures = await interleaveFigures({
      tidings: async () =>
        measure(await startLineProcess('push-ours.ts', [await cloneDatabase(), service])),
      bare: async () => measure(await startLineProcess('push-bare.ts', [service], findNode())),
      encryption: async () =>
        measureSending(await startLineProcess('push-encryption.ts', [service]), undefined, COUNTS),
    })
    const { tidings, encryption } = figures
    const share = ((100 * encryption.processorMs) / tidings.processorMs).toFixed(0)
    console.log(
      `Of the ${tidings.processorMs.toFixed(2)} ms of processor time of our push, ${encryption.processorMs.toFixed(2)} ms (${share} %) are encryption`,
    )
    return toLines(
      {
        subject: 'push',
        what: 'pushes/s over HTTPS, 32 at a time: claimed, encrypted, sent and recorded',
        reference: 'web-push, encrypted, signed and sent',
      },
      figures,
    )
  } finally {
    await receiver.stop()
    await closeCluster()
  }
}
