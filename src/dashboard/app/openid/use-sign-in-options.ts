import { useMemo } from 'preact/hooks'
import { useRoute } from '../components/use-query.ts'
import type { SignInOptions } from '../../../access/openid/schema.ts'

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
  const { data, failure } = useRoute('GET /api/sign-in')
  return useMemo(() => (data || failure ? { ...DEFAULTS, ...data } : undefined), [data, failure])
}
