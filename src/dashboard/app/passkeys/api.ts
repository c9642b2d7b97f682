import type { Account } from '../../../access/sign-in/schema.ts'
import { request, toFailure, type Result } from '../request.ts'
import type { Input } from '../routes.ts'
import { isInstalled } from '../session.ts'

/** A browser returns either of them as the server takes it. */
type Credentials = Input<'POST /api/passkeys'>['credential'] &
  Input<'POST /api/session/passkey'>['credential']

const NOT_USED =
  'The passkey was not used. Try again, and confirm it in the dialog of your browser.'

/** Returns whether the browser has passkeys on this page, which requires HTTPS. */
export function canUsePasskeys(): boolean {
  return (
    typeof PublicKeyCredential === 'function' &&
    'parseRequestOptionsFromJSON' in PublicKeyCredential
  )
}

/** Asks the browser for a new passkey, and adds it to the account. */
export async function addPasskey(name: string) {
  const options = await request('POST /api/passkeys/options')
  if (!options.ok) return options
  const credential = await askBrowser(() =>
    navigator.credentials.create({
      publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(
        // The schema of the server names its challenge alone.
        options.data as unknown as PublicKeyCredentialCreationOptionsJSON,
      ),
    }),
  )
  return credential.ok ? request('POST /api/passkeys', { name, ...credential.data }) : credential
}

/**
 * Signs in with a passkey. With `mediation`, the browser offers them in the e-mail field. The error
 * `not_confirmed` means that none was chosen.
 */
export function signInWithPasskey(
  choice: Pick<CredentialRequestOptions, 'signal' | 'mediation'> = {},
): Promise<Result<Account>> {
  return sign('/api/session/passkey', choice, { isInstalled: isInstalled() })
}

/** Confirms with a passkey that the account is present. */
export function verifyWithPasskey(): Promise<Result<Account>> {
  return sign('/api/session/verify/passkey', {}, {})
}

async function sign(
  path: '/api/session/passkey' | '/api/session/verify/passkey',
  choice: Pick<CredentialRequestOptions, 'signal' | 'mediation'>,
  more: object,
): Promise<Result<Account>> {
  const options = await request(`POST ${path}/options`)
  // Nobody waits for what the browser offers by itself.
  if (!options.ok) return choice.mediation ? fail(NOT_USED) : options
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options.data)
  const credential = await askBrowser(() => navigator.credentials.get({ ...choice, publicKey }))
  return credential.ok ? request(`POST ${path}`, { ...credential.data, ...more }) : credential
}

async function askBrowser(
  ask: () => Promise<Credential | null>,
): Promise<Result<{ credential: Credentials }>> {
  try {
    const credential = await ask()
    if (credential instanceof PublicKeyCredential) {
      return { ok: true, data: { credential: credential.toJSON() as unknown as Credentials } }
    }
  } catch (error) {
    if (error instanceof DOMException && error.name === 'InvalidStateError') {
      return fail('This device has a passkey of your account already.')
    }
  }
  return fail(NOT_USED)
}

function fail(message: string): { ok: false; failure: ReturnType<typeof toFailure> } {
  return { ok: false, failure: toFailure({ code: 'not_confirmed', message }) }
}
