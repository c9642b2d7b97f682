// P-256: y² = x³ - 3x + b modulo p (SEC 2, section 2.4.2).
const P = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffffn
const B = 0x5ac635d8aa3a93e7b3ebbd55769886bc651d06b0cc53b0f63bce3c3e27d2604bn
const BYTES = 32

/** Whether these are an uncompressed point of P-256: with any other, a secret agreed upon is none. */
export function isPoint(bytes: Uint8Array): boolean {
  if (bytes.length !== 1 + 2 * BYTES || bytes[0] !== 4) return false
  const x = toNumber(bytes.subarray(1, 1 + BYTES))
  const y = toNumber(bytes.subarray(1 + BYTES))
  return x < P && y < P && (y * y - (x * x * x - 3n * x + B)) % P === 0n
}

function toNumber(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
}
