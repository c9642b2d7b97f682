import { useEffect, useState } from 'preact/hooks'
import { readSignInOptions, type SignInOptions } from './api.ts'

/** The options before the server has answered. */
const PASSWORDS_ONLY: SignInOptions = {
  hasPasswords: true,
  providers: [],
  proxyEmail: null,
  confirmation: null,
}

/** Returns the ways to sign in; passwords alone until they are loaded. */
export function useSignInOptions(): SignInOptions {
  const [options, setOptions] = useState(PASSWORDS_ONLY)
  useEffect(() => {
    void readSignInOptions().then(result => result.ok && setOptions(result.data))
  }, [])
  return options
}
