import ipaddr from 'ipaddr.js'
import { logger } from '../base/log.ts'

const log = logger('server')

/**
 * Returns a function to call when a peer sends X-Forwarded-For and is no trusted proxy. Its first
 * call for a possible proxy logs which setting is missing.
 */
export function createProxyWarning(trusted: readonly string[]): (peer: string) => void {
  let hasWarned = false
  return peer => {
    const setting = hasWarned ? undefined : suggestTrustedProxies(trusted, peer)
    if (setting === undefined) return
    hasWarned = true
    log.warning(
      'A request from {peer} has the header X-Forwarded-For, which is ignored. If {peer} is your proxy, set TRUSTED_PROXIES to {setting}. Until then, all clients behind it have one address, and delay each other at sign-in.',
      { peer, setting },
    )
  }
}

/**
 * Returns a function to call with a request for the live feed that is no handshake. It logs once
 * that a proxy has removed the headers of one.
 */
export function createUpgradeWarning(): (request: Request) => void {
  let hasWarned = false
  return ({ headers }) => {
    // Proxies remove only headers for one hop: Upgrade and Connection.
    if (hasWarned || !headers.has('sec-websocket-key')) return
    hasWarned = true
    log.warning(
      'A WebSocket handshake has arrived without the header Upgrade. If the server is behind a proxy, let it pass the headers Upgrade and Connection. Until then, the dashboard asks for new events again and again.',
    )
  }
}

/**
 * Returns the value of TRUSTED_PROXIES that includes a peer. Undefined if the peer is probably no
 * proxy: with trusted proxies set, any client at a public address can send the header.
 */
export function suggestTrustedProxies(
  trusted: readonly string[],
  peer: string,
): string | undefined {
  if (!ipaddr.isValid(peer)) return undefined
  const address = ipaddr.process(peer)
  if (trusted.length > 0 && address.range() === 'unicast') return undefined
  return [...trusted, address.toString()].join(',')
}
