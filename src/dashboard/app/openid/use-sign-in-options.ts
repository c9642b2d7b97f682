import { useEffect, useState } from 'preact/hooks'
import { readSignInOptions, type SignInOptions } from './api.ts'

/** The options of a server that does not say them. */
const PASSWORDS_ONLY: SignInOptions = {
  hasPasswords: true,
  providers: [],
  proxyEmail: null,
  confirmation: null,
}

/** Returns the ways to sign in; undefined until they are loaded, because others would move. */
export function useSignInOptions(): SignInOptions | undefined {
  const [options, setOptions] = useState<SignInOptions>()
  useEffect(() => {
    void readSignInOptions().then(result => setOptions(result.ok ? result.data : PASSWORDS_ONLY))
  }, [])
  return options
}
