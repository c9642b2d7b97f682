import { randomBytes } from 'node:crypto'
import type { Config } from '../../base/config.ts'
import { toReason } from '../../base/errors.ts'
import { httpGet } from '../../base/http-get.ts'
import { FEED_PATH } from '../../log/feed/socket-guard.ts'
import { failed, ok, warning, type Finding } from './finding.ts'

const LOCAL = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/
const ASK_MS = 5_000

type Site = Pick<Config, 'baseUrl' | 'trustedProxies'>

/** Checks BASE_URL: encryption, reachability, and the headers that a proxy forwards. */
export async function checkAddress({ baseUrl, trustedProxies }: Site): Promise<Finding[]> {
  const proxies = checkTrustedProxies({ baseUrl, trustedProxies })
  if (baseUrl === undefined) {
    const message = 'Not set. Set it before people on other machines use the server.'
    return [ok('BASE_URL', message), ...proxies]
  }
  const url = new URL(baseUrl)
  const isPlain = url.protocol === 'http:' && !LOCAL.test(url.hostname)
  const address = isPlain
    ? warning(
        'BASE_URL',
        `${baseUrl} is not encrypted. Others can read passwords and session cookies on the network. Put a proxy with HTTPS in front of Tidings.`,
      )
    : ok('BASE_URL', baseUrl)
  const reachable = await checkReachable(baseUrl)
  if (reachable.state !== 'ok') return [address, reachable, ...proxies]
  return [address, reachable, await checkHandshake(baseUrl), ...proxies]
}

async function checkReachable(baseUrl: string): Promise<Finding> {
  const check = 'reachable'
  try {
    const { status, location, body } = await httpGet(`${baseUrl}/healthz`, { timeoutMs: ASK_MS })
    if (status === 200 && body.includes('"status":"ok"'))
      return ok(check, `Tidings responds at ${baseUrl}`)
    return failed(
      check,
      location === undefined
        ? `Another server responds at ${baseUrl} (status ${status}). Configure the proxy to forward requests to Tidings.`
        : `${baseUrl} redirects to ${location}. Set BASE_URL to the final address.`,
    )
  } catch (error) {
    const reason = toReason(error)
    return /CERT|SELF_SIGNED|UNABLE_TO_/.test(`${reason} ${(error as { code?: string }).code}`)
      ? failed(
          check,
          `Browsers reject the certificate of ${baseUrl} (${reason}). Install a valid certificate.`,
        )
      : warning(
          check,
          `Nothing responds at ${baseUrl} (${reason}). Start the server, or check DNS, the firewall and the proxy.`,
        )
  }
}

/**
 * Opens a WebSocket without a session. The error code of the refusal shows what the proxy forwards.
 */
async function checkHandshake(baseUrl: string): Promise<Finding> {
  const check = 'proxy'
  try {
    const { status, body } = await httpGet(`${baseUrl}${FEED_PATH}`, {
      timeoutMs: ASK_MS,
      headers: {
        Connection: 'Upgrade',
        Upgrade: 'websocket',
        Origin: new URL(baseUrl).origin,
        'Sec-WebSocket-Version': '13',
        'Sec-WebSocket-Key': randomBytes(16).toString('base64'),
      },
    })
    if (body.includes('"signed_out"')) return ok(check, 'The Host header and WebSockets arrive')
    if (body.includes('"wrong_host"'))
      return failed(
        check,
        'The proxy changes the Host header. Configure it to forward the original one.',
      )
    if (body.includes('"cross_site"'))
      return failed(
        check,
        `The running server has a different BASE_URL than ${baseUrl}. Restart it.`,
      )
    return failed(
      check,
      `The proxy blocks WebSockets (status ${status}). Configure it to forward the headers Connection and Upgrade for ${FEED_PATH}.`,
    )
  } catch (error) {
    return failed(
      check,
      `The proxy closes WebSockets (${toReason(error)}). Configure it to forward ${FEED_PATH}.`,
    )
  }
}

/** Checks the trusted proxies. Tidings has no TLS of its own, so HTTPS always means a proxy. */
function checkTrustedProxies({ baseUrl, trustedProxies }: Site): Finding[] {
  const check = 'TRUSTED_PROXIES'
  if (trustedProxies.some(network => network.endsWith('/0'))) {
    const message = `${trustedProxies.join(', ')} trusts every client, so anyone can fake their IP address. Set it to the network of your proxy.`
    return [failed(check, message)]
  }
  if (trustedProxies.length > 0) return [ok(check, trustedProxies.join(', '))]
  if (!baseUrl?.startsWith('https:')) return []
  const message =
    'Not set, but BASE_URL uses HTTPS, which requires a proxy. All clients appear to have the IP address of the proxy, so failed sign-ins of one client delay all of them. Set it to the network of the proxy, like 10.0.0.0/8.'
  return [warning(check, message)]
}
