import { realpathSync } from 'node:fs'
import { isTimeZone } from '../zone-rules.ts'

/**
 * Returns the name of the zone in a value of TZ, as a runtime knows it. The C library also takes
 * files, such as `:/etc/localtime`, which a runtime reads as UTC. Returns undefined for a value
 * that it would read as UTC, too.
 */
export function toTimeZone(
  text: string,
  resolve: (path: string) => string = realpathSync,
): string | undefined {
  const name = text.replace(/^:/, '')
  const zone = name.startsWith('/') ? toZoneOfFile(name, resolve) : name
  if (zone === undefined || /^(UTC|GMT)-?0$/.test(zone)) return zone && 'UTC'
  // An offset is a zone of `Intl`, but none of TZ.
  return isTimeZone(zone) ? zone : undefined
}

function toZoneOfFile(file: string, resolve: (path: string) => string): string | undefined {
  try {
    return /\/zoneinfo\/(?:posix\/)?(.+)$/.exec(resolve(file))?.[1]
  } catch {
    return undefined
  }
}
