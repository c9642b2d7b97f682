import { useEffect, useState } from 'preact/hooks'
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
  const [options, setOptions] = useState<SignInOptions>()
  useEffect(() => {
    void readSignInOptions().then(result =>
      setOptions({ ...DEFAULTS, ...(result.ok && result.data) }),
    )
  }, [])
  return options
}
