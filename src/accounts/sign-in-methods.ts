/** The ways to sign in. A link is a setup link or an invite. */
export const SIGN_IN_METHODS = ['password', 'passkey', 'openid', 'proxy', 'link'] as const
export type SignInMethod = (typeof SIGN_IN_METHODS)[number]
