import { useRoute } from '../components/use-query.ts'
import type { SignInOptions } from '../../../access/openid/schema.ts'

/** The options of a server that does not say them. */
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
  return data ?? (failure && DEFAULTS)
}
