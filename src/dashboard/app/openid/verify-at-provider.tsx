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
      {({ items }) =>
        items.length > 0 ? (
          <>
            <p>You come back to this page. Then repeat the action.</p>
            {items.map(({ id, provider, label }) => (
              <button key={id} type="button" class="button" onClick={() => visit(provider)}>
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
      }
    </Loaded>
  )
}
