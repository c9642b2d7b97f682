import { Secret, TOTP } from 'otpauth'

const STEP_S = 30
const SECRET_BYTES = 20
/** The number of steps by which the clock of a phone may differ. */
const WINDOW = 1

/** Returns a new secret for an authenticator app, in base32. */
export function newTotpSecret(): string {
  return new Secret({ size: SECRET_BYTES }).base32
}

/** Returns the URI that an authenticator app reads from a QR code. */
export function toTotpUri(secret: string, email: string): string {
  return toTotp(secret, email).toString()
}

/**
 * Returns the time step whose code this is, or undefined. Only steps after `lastStep` count, so
 * that a code is accepted once.
 */
export function findTotpStep(
  secret: string,
  { code, lastStep, nowMs }: { code: string; lastStep: number; nowMs: number },
): number | undefined {
  const delta = toTotp(secret).validate({ token: code, window: WINDOW, timestamp: nowMs })
  if (delta === null) return undefined
  const step = Math.floor(nowMs / 1000 / STEP_S) + delta
  return step > lastStep ? step : undefined
}

// SHA-1, 6 digits and 30 s are the defaults; many apps ignore other values.
function toTotp(secret: string, label = 'Tidings'): TOTP {
  return new TOTP({
    issuer: 'Tidings',
    label,
    algorithm: 'SHA1',
    digits: 6,
    period: STEP_S,
    secret: Secret.fromBase32(secret),
  })
}
