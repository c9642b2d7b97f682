import { expect, test } from 'bun:test'
import { checkAddress } from '../../src/cli/doctor/address.ts'
import { listCodeBlocks } from '../support/docs.ts'
import { boot } from '../support/servers/server.ts'
import { startNginx } from '../support/servers/nginx.ts'
import { hasTool } from '../support/tools.ts'
import { until } from '../support/until.ts'
import { findFreePort } from '../support/loopback.ts'

test.skipIf(!hasTool('nginx'))(
  'doctor finds Host and WebSockets behind the nginx of the documentation',
  async () => {
    const port = await findFreePort()
    const baseUrl = `http://127.0.0.1:${port}`
    await using server = await boot({ baseUrl })
    await using _ = await startNginx(readBlock('nginx'), {
      port,
      addresses: { '127.0.0.1:3000': new URL(server.url).host },
    })
    await until(async () => (await fetch(`${baseUrl}/healthz`).catch(() => undefined))?.ok === true)
    const findings = await checkAddress({ baseUrl, trustedProxies: ['127.0.0.1/32'] })
    expect(findings.map(({ check, state }) => `${check} ${state}`)).toEqual([
      'BASE_URL ok',
      'reachable ok',
      'proxy ok',
      'TRUSTED_PROXIES ok',
    ])
  },
)

/** Returns the first block of a language in docs/self-hosting.md. */
function readBlock(language: string): string {
  const blocks = listCodeBlocks('docs/self-hosting.md')
  return blocks.find(block => block.language === language)?.text ?? ''
}
