import { Loaded } from '../components/loaded.tsx'
import { SignOutButton } from '../components/sign-out-button.tsx'
import { showToast } from '../components/toast.tsx'
import { useQuery } from '../components/use-query.ts'
import { readConnections, startVisit } from './api.ts'
import { t, toRich } from '../locales/translate.tsx'

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
            <p>{t('words.verifyElsewhere')}</p>
            {items.map(({ id, provider, label }) => (
              <button key={id} type="button" class="button" onClick={() => visit(provider)}>
                {toRich({ key: 'words.confirmAt', values: { label: <bdi>{label}</bdi> } })}
              </button>
            ))}
          </>
        ) : (
          <>
            <p>{t('words.verifyBySignIn')}</p>
            <SignOutButton />
          </>
        )
      }
    </Loaded>
  )
}
