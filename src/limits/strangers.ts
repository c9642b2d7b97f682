import ipaddr from 'ipaddr.js'
import { tooManyRequests } from './rate-limit.ts'

const WINDOW_MS = 60_000
const MAX_FAILURES = 60
const MAX_ADDRESSES = 10_000

export interface Strangers {
  /** Counts one failed authentication of `address` at `nowMs`, of performance.now; returns the seconds to wait once there were too many. */
  take(address: string, nowMs: number): number | undefined
}

/** Counts failed authentications per client address, in memory: the oldest address makes room for a new one. */
export function createStrangers(): Strangers {
  const windows = new Map<string, { failures: number; endsAt: number }>()
  return {
    take(address, nowMs) {
      const network = toNetwork(address)
      let window = windows.get(network)
      if (!window || window.endsAt <= nowMs) {
        windows.delete(network)
        if (windows.size >= MAX_ADDRESSES) windows.delete(windows.keys().next().value ?? '')
        window = { failures: 0, endsAt: nowMs + WINDOW_MS }
        windows.set(network, window)
      }
      window.failures++
      if (window.failures <= MAX_FAILURES) return undefined
      return Math.max(1, Math.ceil((window.endsAt - nowMs) / 1000))
    },
  }
}

/** Counts a failure of whoever came with a key, or a token in a cookie or of a link, that is none. Throws `rate_limited`. */
export function countStranger(strangers: Strangers, address: string): void {
  const seconds = strangers.take(address, performance.now())
  if (seconds !== undefined) throw tooManyRequests(seconds)
}

/** One household of addresses: an IPv4 address, or the /64 of an IPv6 one. */
export function toNetwork(address: string): string {
  if (!ipaddr.isValid(address)) return address
  const parsed = ipaddr.process(address)
  if (parsed.kind() === 'ipv4') return parsed.toString()
  return (parsed as ipaddr.IPv6).parts.slice(0, 4).join(':')
}
