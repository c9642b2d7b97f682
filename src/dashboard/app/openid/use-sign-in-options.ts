import { useMemo } from 'preact/hooks'
import { useQuery } from '../components/use-query.ts'
import { readSignInOptions, type SignInOptions } from './api.ts'

/** The options of a server that does not say them. Servers up to 0.2.0 say fewer. */
const DEFAULTS: SignInOptions = {
  hasOwner: true,
  isSignedIn: true,
  hasPasswords: true,
  providers: [],
  proxyEmail: null,
  confirmation: null,
}

/** Returns the ways to sign in; undefined until they are loaded, because others would move. */
export function useSignInOptions(): SignInOptions | undefined {
  const { data, failure } = useQuery('', readSignInOptions)
  return useMemo(() => (data || failure ? { ...DEFAULTS, ...data } : undefined), [data, failure])
}
