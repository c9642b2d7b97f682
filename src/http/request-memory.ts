import { tooManyAtOnce } from '../base/semaphore.ts'

const MIB = 1024 * 1024
/** A request without its body: headers, call and promises. */
const BYTES_OF_REQUEST = 4 * 1024
const MAX_BYTES_OF_SHARE = 64 * MIB
const MAX_BYTES = 256 * MIB

/** The memory that a request has until its response. */
export interface Reservation {
  /** Changes the size of the body, once it is known. */
  resize(bodyBytes: number): void
  release(): void
}

/** The memory of the requests in progress, by share: an organization, or an account. */
export type RequestMemory = ReturnType<typeof createRequestMemory>

/** Returns the bytes of a request. An impossible size counts as all that a share may have. */
function toBytes(bodyBytes: number): number {
  const isPossible = bodyBytes >= 0 && bodyBytes <= MAX_BYTES_OF_SHARE
  return BYTES_OF_REQUEST + (isPossible ? bodyBytes : MAX_BYTES_OF_SHARE)
}

/**
 * Bounds the requests that wait, by their bytes. It is the only limit to how many do: queues and
 * semaphores behind it choose who is next, and refuse nobody.
 *
 * A share may have 64 MiB: two and a half times the 100 requests of 256 KiB that a default key may
 * send at once (25.4 MiB), or 16,384 small ones. All shares together may have 256 MiB: the largest
 * requests of ten such keys. When they are full, a share that has less than its equal part still
 * gets up to that part. So no share is refused for what others have, and `n` shares that all send
 * what they can have 256 MiB × (1 + 1/5 + 1/6 + … + 1/n): 0.5 GiB for ten, 1 GiB for a hundred.
 */
export function createRequestMemory() {
  const shares = new Map<string, number>()
  let total = 0

  function add(share: string, bytes: number): void {
    const sum = (shares.get(share) ?? 0) + bytes
    total += bytes
    if (sum > 0) shares.set(share, sum)
    else shares.delete(share)
  }

  return {
    /** Reserves memory for a request. Throws `unavailable` if the share has too much. */
    reserve(share: string, bodyBytes: number): Reservation {
      let bytes = toBytes(bodyBytes)
      const own = (shares.get(share) ?? 0) + bytes
      const equalPart = MAX_BYTES / (shares.size + (shares.has(share) ? 0 : 1))
      if (own > MAX_BYTES_OF_SHARE || (total + bytes > MAX_BYTES && own > equalPart)) {
        throw tooManyAtOnce()
      }
      add(share, bytes)
      const resize = (to: number) => {
        add(share, to - bytes)
        bytes = to
      }
      return {
        resize: bodyBytes => resize(toBytes(bodyBytes)),
        release: () => resize(0),
      }
    },
    /** The bytes of all requests in progress. */
    get bytes() {
      return total
    },
  }
}
