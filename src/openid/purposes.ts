/** The purposes of a visit to a provider. */
export const PURPOSES = ['signIn', 'connect', 'verify'] as const
