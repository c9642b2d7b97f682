import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'
import { toReason } from '../../base/errors.ts'
import { logger } from '../../base/log.ts'

const log = logger('egress')
const REFRESH_MS = 5_000

/** Returns true for an address of this machine, in the spelling of `toString` of ipaddr.js. */
export type OwnAddresses = (address: string) => boolean

/** Creates a check that reads the addresses of this machine, and keeps them for 5 s. */
export function createOwnAddresses(list: () => string[] = listInterfaces): OwnAddresses {
  let addresses = new Set<string>()
  let readMs = -Infinity
  return address => {
    const nowMs = performance.now()
    if (nowMs - readMs >= REFRESH_MS) {
      readMs = nowMs
      try {
        addresses = new Set(list().map(normalize))
      } catch (error) {
        log.warning('The addresses of this machine cannot be read: {reason}', {
          reason: toReason(error),
        })
      }
    }
    return addresses.has(address)
  }
}

function listInterfaces(): string[] {
  return Object.values(networkInterfaces()).flatMap(all => all?.map(({ address }) => address) ?? [])
}

/** A zone, as in `fe80::1%eth0`, is no part of the address. */
function normalize(address: string): string {
  const bare = address.replace(/%.*$/, '')
  return ipaddr.isValid(bare) ? ipaddr.process(bare).toString() : bare
}
