import { Type, type Static } from '@sinclair/typebox'
import { Text } from '../../http/rules.ts'
import { closed, Nullable, Timestamp } from '../../http/schema-parts.ts'
import { Name } from '../guard/schema.ts'

/** A passkey as its account sees it. */
export const PasskeyInfo = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    /** True if other devices have the passkey, too. */
    isSynced: Type.Boolean(),
    createdAt: Timestamp,
    lastUsedAt: Nullable(Timestamp),
    /** True if its counter went backwards. It is then no longer accepted. */
    isDisabled: Type.Boolean(),
  },
  closed,
)
export type PasskeyInfo = Static<typeof PasskeyInfo>

export const PasskeyList = Type.Object({ items: Type.Array(PasskeyInfo) }, closed)

/** Options of WebAuthn, as `parseCreationOptionsFromJSON` and its sibling read them. */
export const WebAuthnOptions = Type.Object(
  { challenge: Type.String({ description: 'Base64url; valid for 5 minutes, and once.' }) },
  { description: 'Pass it to the WebAuthn API of the browser.' },
)

const CredentialId = Text({ minLength: 1, maxLength: 1_364, description: 'Base64url.' })
const ClientData = Text({ minLength: 1, maxLength: 8_192, description: 'Base64url.' })

/** A new credential, as `PublicKeyCredential.toJSON` returns it. */
export const NewCredential = Type.Object({
  id: CredentialId,
  rawId: CredentialId,
  type: Type.Literal('public-key'),
  response: Type.Object({
    clientDataJSON: ClientData,
    attestationObject: Text({ minLength: 1, maxLength: 65_536, description: 'Base64url.' }),
    transports: Type.Optional(Type.Array(Text({ maxLength: 32 }), { maxItems: 16 })),
  }),
})
export type NewCredential = Static<typeof NewCredential>

/** A signature of a credential, as `PublicKeyCredential.toJSON` returns it. */
export const Assertion = Type.Object({
  id: CredentialId,
  rawId: CredentialId,
  type: Type.Literal('public-key'),
  response: Type.Object({
    clientDataJSON: ClientData,
    authenticatorData: Text({ minLength: 1, maxLength: 8_192, description: 'Base64url.' }),
    signature: Text({ minLength: 1, maxLength: 8_192, description: 'Base64url.' }),
    userHandle: Type.Optional(Nullable(Text({ maxLength: 128, description: 'Base64url.' }))),
  }),
})
export type Assertion = Static<typeof Assertion>

const CREDENTIAL = { id: 'AQIDBA', rawId: 'AQIDBA', type: 'public-key' }
const ASSERTION = {
  ...CREDENTIAL,
  response: { clientDataJSON: 'e30', authenticatorData: 'AQIDBA', signature: 'AQIDBA' },
}

export const PasskeyBody = Type.Object(
  { name: Name, credential: NewCredential },
  {
    examples: [
      {
        name: 'Phone',
        credential: {
          ...CREDENTIAL,
          response: { clientDataJSON: 'e30', attestationObject: 'AQIDBA' },
        },
      },
    ],
  },
)
export const PasskeyChange = Type.Object({ name: Name }, { examples: [{ name: 'Phone' }] })
export const VerifyBody = Type.Object(
  { credential: Assertion },
  { examples: [{ credential: ASSERTION }] },
)
export const SignInBody = Type.Object(
  {
    credential: Assertion,
    isInstalled: Type.Optional(
      Type.Boolean({
        description: 'True if an installed app signs in. It stays signed in longer.',
      }),
    ),
  },
  { examples: [{ credential: ASSERTION }] },
)
