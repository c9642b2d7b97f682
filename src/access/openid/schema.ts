import { Type, type Static } from '@sinclair/typebox'
import { Name } from '../guard/schema.ts'
import { ROLES } from '../guard/permissions.ts'
import { OneOf, Text } from '../../http/rules.ts'
import { closed, Nullable, Timestamp } from '../../http/schema-parts.ts'

/** The purposes of a visit to a provider. */
export const PURPOSES = ['signIn', 'connect', 'verify'] as const

const Short = { minLength: 1, maxLength: 200 }

/** The ways to sign in that the sign-in page offers. */
export const SignInOptions = Type.Object(
  {
    /** False if the server has no account yet. */
    hasOwner: Type.Boolean(),
    /** True if this browser has a session. */
    isSignedIn: Type.Boolean(),
    /** False if passwords are off. */
    hasPasswords: Type.Boolean(),
    providers: Type.Array(
      Type.Object(
        {
          name: Type.String(),
          label: Type.String(),
          /** True if the provider did not respond to the last request of this process. */
          isFailing: Type.Boolean(),
        },
        closed,
      ),
    ),
    /** The e-mail address that the proxy has sent with this request. */
    proxyEmail: Nullable(Type.String()),
    /** The address of an account that this browser must sign in to before it is connected. */
    confirmation: Nullable(Type.Object({ label: Type.String(), email: Type.String() }, closed)),
  },
  closed,
)
export type SignInOptions = Static<typeof SignInOptions>

export const StartBody = Type.Object(
  {
    purpose: OneOf(PURPOSES, 'The purpose of the visit.'),
    next: Type.Optional(
      Text({ maxLength: 2_000, description: 'The path to open afterwards, `/` by default.' }),
    ),
    invite: Type.Optional(
      Text({ minLength: 1, maxLength: 100, description: 'The secret of the invite to accept.' }),
    ),
    isInstalled: Type.Optional(
      Type.Boolean({
        description: 'True if an installed app signs in. It stays signed in longer.',
      }),
    ),
  },
  { examples: [{ purpose: 'signIn' }] },
)

/** The address of a provider at which the visit begins. */
export const Started = Type.Object({ url: Type.String() }, closed)

export const ProxyBody = Type.Object(
  {
    invite: StartBody.properties.invite,
    isInstalled: StartBody.properties.isInstalled,
  },
  { examples: [{}] },
)

/** The account must be signed in another way before the proxy signs it in. */
export const NeedsConfirmation = Type.Object({ needs: Type.Literal('confirmation') }, closed)

/** An identity of the account at a provider, or its address at the proxy. */
export const Connection = Type.Object(
  {
    id: Type.String(),
    /** The name of the provider. */
    provider: Type.String(),
    label: Type.String(),
    issuer: Type.String(),
    createdAt: Timestamp,
    lastUsedAt: Timestamp,
  },
  closed,
)
export type Connection = Static<typeof Connection>

/** The connections of the account, and the providers that it can connect. */
export const Connections = Type.Object(
  {
    items: Type.Array(Connection),
    providers: Type.Array(Type.Object({ name: Type.String(), label: Type.String() }, closed)),
  },
  closed,
)
export type Connections = Static<typeof Connections>

/** The provider that the account is now connected with. */
export const Connected = Type.Object({ label: Type.String() }, closed)

/** A provider, as operators see it. Its client secret is never shown. */
const Provider = Type.Object(
  {
    name: Type.String(),
    label: Type.String(),
    issuer: Type.String(),
    clientId: Type.String(),
    scopes: Type.String(),
    groupsClaim: Type.String(),
    isTrusted: Type.Boolean(),
    isFailing: Type.Boolean(),
    /** The URL to enter at the provider as redirect URL. */
    redirectUrl: Type.String(),
    /** The URL to enter at the provider for back-channel logout. */
    logoutUrl: Type.String(),
  },
  closed,
)
export type Provider = Static<typeof Provider>
export const Providers = Type.Object({ items: Type.Array(Provider) }, closed)

/** The result of a discovery. `problem` is a sentence; null if the provider responds. */
export const ProviderCheck = Type.Object({ problem: Nullable(Type.String()) }, closed)
export type ProviderCheck = Static<typeof ProviderCheck>

/** A rule of an organization: a group at a provider, or a domain, gives a role. */
export const SignInRule = Type.Object(
  {
    provider: Text({ ...Short, description: 'The name of a provider, or `proxy`.' }),
    kind: OneOf(['group', 'domain']),
    value: Type.Unsafe<string>({
      ...Name,
      maxLength: 255,
      description: 'A group, or a domain of addresses.',
    }),
    role: OneOf(ROLES),
  },
  closed,
)
export type SignInRule = Static<typeof SignInRule>

export const SignInRules = Type.Object(
  {
    rules: Type.Array(SignInRule),
    /** The providers that rules can name. The proxy is one of them if its header is set. */
    providers: Type.Array(Type.Object({ name: Type.String(), label: Type.String() }, closed)),
  },
  closed,
)
export type SignInRules = Static<typeof SignInRules>

export const SignInRulesBody = Type.Object(
  { rules: Type.Array(SignInRule, { maxItems: 100 }) },
  { examples: [{ rules: [] }] },
)
