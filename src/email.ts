const MAX_LENGTH = 254
// ASCII alone: then two addresses that look alike are alike, and there is one way to lower the case.
const SHAPE = /^[!-?A-~]{1,64}@[a-z0-9-]+(\.[a-z0-9-]+)*$/

/** An e-mail address as it is kept and compared: trimmed, in lower case. Undefined for what cannot be one. */
export function parseEmail(text: string): string | undefined {
  const email = text.trim().toLowerCase()
  return email.length <= MAX_LENGTH && SHAPE.test(email) ? email : undefined
}
