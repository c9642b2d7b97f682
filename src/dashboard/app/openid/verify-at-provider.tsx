import { Loaded } from '../components/loaded.tsx'
import { SignOutButton } from '../components/sign-out-button.tsx'
import { showToast } from '../components/toast.tsx'
import { useQuery } from '../components/use-query.ts'
import { readConnections, startVisit } from './api.ts'

/** Lets an account without another credential confirm at a provider that it is present. */
export function VerifyAtProvider() {
  const connections = useQuery('', readConnections)

  async function visit(provider: string) {
    const next = location.pathname + location.search
    const result = await startVisit(provider, { purpose: 'verify', next })
    if (!result.ok) showToast({ message: result.failure.message })
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
