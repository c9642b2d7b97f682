import { useState } from 'preact/hooks'
import { toSignInPath } from '../paths.ts'
import type { SignInOptions } from '../../../access/openid/schema.ts'
import { request, type Failure, type Result } from '../request.ts'
import { isInstalled, loadSession } from '../session.ts'
import { leaveForm, startVisit } from './api.ts'
import { useRoute } from '../components/query.tsx'

interface ProviderButtonsOptions {
  /** The path to open afterwards. */
  next: string
  /** The secret of the invite to accept. */
  invite?: string
  options: SignInOptions
  /** Called when the proxy has signed in. */
  onDone?(): void
}

/** The buttons to sign in at each provider, or as the visitor whom the proxy names. */
export function ProviderButtons({ options, next, invite, onDone }: ProviderButtonsOptions) {
  const { providers, proxyEmail, hasPasswords } = options
  const [busy, setBusy] = useState<string>()
  const [failure, setFailure] = useState<Failure>()
  if (providers.length === 0 && proxyEmail === null) return null
  const withInvite = invite !== undefined && { invite }

  async function act(name: string, send: () => Promise<Result<object>>) {
    if (busy !== undefined) return
    setBusy(name)
    setFailure(undefined)
    const result = await send()
    // A visit that has started leaves the page.
    if (result.ok && name !== '') return
    setBusy(undefined)
    if (!result.ok) return setFailure(result.failure)
    if ('needs' in result.data) {
      leaveForm(toSignInPath(next))
      return
    }
    await loadSession()
    onDone?.()
  }

  return (
    <div class="ways-in">
      {hasPasswords && <p class="ways-in-or">or</p>}
      {failure && (
        <p class="notice" role="alert">
          {failure.message}
        </p>
      )}
      {proxyEmail !== null && (
        <button
          type="button"
          class={hasPasswords ? 'button button-plain' : 'button'}
          aria-disabled={busy !== undefined}
          onClick={() =>
            act('', () =>
              request('POST /api/session/proxy', { ...withInvite, isInstalled: isInstalled() }),
            )
          }
        >
          <span>
            Continue as <bdi>{proxyEmail}</bdi>
          </span>
        </button>
      )}
      {providers.map(({ name, label, isFailing }) => (
        <button
          key={name}
          type="button"
          class="button button-plain"
          aria-disabled={busy !== undefined}
          onClick={() =>
            act(name, () => startVisit({ provider: name, purpose: 'signIn', next, ...withInvite }))
          }
        >
          <span>
            {busy === name ? 'Opening' : 'Continue with'} <bdi>{label}</bdi>
          </span>
          {isFailing && <span class="badge badge-bad">Did not respond</span>}
        </button>
      ))}
    </div>
  )
}

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
