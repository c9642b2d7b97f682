import { Loaded } from '../components/loaded.tsx'
import { SignOutButton } from '../components/sign-out-button.tsx'
import { showResult } from '../components/toast.tsx'
import { useRoute } from '../components/use-query.ts'
import { startVisit } from './api.ts'

/** Lets an account without another credential confirm at a provider that it is present. */
export function VerifyAtProvider() {
  const connections = useRoute('GET /api/me/connections')

  async function visit(provider: string) {
    const next = location.pathname + location.search
    showResult(await startVisit({ provider, purpose: 'verify', next }))
  }

  return (
    <Loaded query={connections}>
      {({ items, providers }) => {
        // The proxy, and a provider that is gone, cannot be visited.
        const connected = providers.filter(one => items.some(item => item.provider === one.name))
        return connected.length > 0 ? (
          <>
            <p>You come back to this page. Then repeat the action.</p>
            {connected.map(({ name, label }) => (
              <button key={name} type="button" class="button" onClick={() => visit(name)}>
                Confirm at <bdi>{label}</bdi>
              </button>
            ))}
          </>
        ) : (
          <>
            <p>Your account has no password. Sign out and sign in again, then repeat this.</p>
            <SignOutButton />
          </>
        )
      }}
    </Loaded>
  )
}
