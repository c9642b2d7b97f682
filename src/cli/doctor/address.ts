import { randomBytes } from 'node:crypto'
import type { Config } from '../../config.ts'
import { toReason } from '../../errors.ts'
import { FEED_PATH } from '../../feed/socket-guard.ts'
import { httpGet } from '../../http-get.ts'
import { failed, ok, warning, type Finding } from './finding.ts'

const LOCAL = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/
const ASK_MS = 5_000

type Site = Pick<Config, 'baseUrl' | 'trustedProxies'>

/** The address that others use: whether it is safe, whether we answer there, and what a proxy in front of us hands on. */
export async function checkAddress({ baseUrl, trustedProxies }: Site): Promise<Finding[]> {
  const proxies = checkTrustedProxies({ baseUrl, trustedProxies })
  if (baseUrl === undefined) {
    const message = 'not set: fine on this machine, set it before others use the server'
    return [ok('BASE_URL', message), ...proxies]
  }
  const url = new URL(baseUrl)
  if (url.protocol === 'http:' && !LOCAL.test(url.hostname)) {
    const message = `${baseUrl} is not encrypted, so passwords and the cookie of who is signed in can be read on the way: put a proxy with https in front`
    return [warning('BASE_URL', message), await checkReachable(baseUrl), ...proxies]
  }
  const reachable = await checkReachable(baseUrl)
  if (reachable.state !== 'ok') return [ok('BASE_URL', baseUrl), reachable, ...proxies]
  return [ok('BASE_URL', baseUrl), reachable, await checkHandshake(baseUrl), ...proxies]
}

async function checkReachable(baseUrl: string): Promise<Finding> {
  const check = 'reachable'
  try {
    const { status, location, body } = await httpGet(`${baseUrl}/healthz`, { timeoutMs: ASK_MS })
    if (status === 200 && body.includes('"status":"ok"')) return ok(check, 'Tidings answers there')
    return failed(
      check,
      location === undefined
        ? `something else answers at ${baseUrl} (status ${status}): let the proxy send it here`
        : `${baseUrl} leads on to ${location}: set BASE_URL to where people end up`,
    )
  } catch (error) {
    const reason = toReason(error)
    return /CERT|SELF_SIGNED|UNABLE_TO_/.test(`${reason} ${(error as { code?: string }).code}`)
      ? failed(check, `the certificate of ${baseUrl} is not good (${reason}): browsers refuse it`)
      : warning(
          check,
          `nothing answers at ${baseUrl} (${reason}): start the server, else look at the name, the firewall and the proxy`,
        )
  }
}

/** A handshake of the feed, without a session: the refusal tells what has arrived of it. */
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
    if (body.includes('"signed_out"')) return ok(check, 'Host and WebSockets come through')
    if (body.includes('"wrong_host"'))
      return failed(check, 'it changes the header Host: have it hand on the one that it was sent')
    if (body.includes('"cross_site"'))
      return failed(check, `the server that runs has another BASE_URL than ${baseUrl}: restart it`)
    return failed(
      check,
      `it lets no WebSocket through (status ${status}): have it hand on the headers Connection and Upgrade for ${FEED_PATH}`,
    )
  } catch (error) {
    return failed(check, `it ends WebSockets (${toReason(error)}): have it hand on ${FEED_PATH}`)
  }
}

/** We speak no https ourselves: where the address does, everybody comes through a proxy. */
function checkTrustedProxies({ baseUrl, trustedProxies }: Site): Finding[] {
  const check = 'TRUSTED_PROXIES'
  if (trustedProxies.some(network => network.endsWith('/0'))) {
    const message = `${trustedProxies.join(', ')} believes everybody, so that anybody can pretend to come from anywhere: name the proxy's own network`
    return [failed(check, message)]
  }
  if (trustedProxies.length > 0) return [ok(check, trustedProxies.join(', '))]
  if (!baseUrl?.startsWith('https:')) return []
  const message =
    'not set, though a proxy must stand in front of https: all people look like that one address, and whoever guesses passwords locks out all of them. Name its network, like 10.0.0.0/8'
  return [warning(check, message)]
}
