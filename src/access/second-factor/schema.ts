import { Type } from '@sinclair/typebox'
import { QrCode } from '../../http/qr-code.ts'
import { Text } from '../../http/rules.ts'
import { closed } from '../../http/schema-parts.ts'

/** A new secret for an authenticator app. */
export const TotpSecret = Type.Object(
  {
    secret: Type.String({ description: 'In base32, for apps that cannot scan.' }),
    uri: Type.String({ examples: ['otpauth://totp/Tidings:ada@example.com?secret=…'] }),
    qr: QrCode,
  },
  closed,
)

export const RecoveryCodes = Type.Object(
  { codes: Type.Array(Type.String({ examples: ['7k3q-m0zt-9hvw-2c8x'] })) },
  closed,
)

export const CodeBody = Type.Object(
  {
    code: Text({
      minLength: 1,
      maxLength: 64,
      description: 'The six digits of the authenticator app, or a recovery code.',
    }),
  },
  { examples: [{ code: '123456' }] },
)
