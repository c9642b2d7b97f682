import { useState } from 'preact/hooks'
import { ActionButton } from '../components/action-button.tsx'
import { Loaded } from '../components/loaded.tsx'
import { useRoute } from '../components/use-query.ts'
import type { Provider } from '../../../access/openid/schema.ts'
import { request } from '../request.ts'
import { Section } from '../components/section.tsx'

/** The OpenID Connect providers of the server, for its operator. */
export function Providers() {
  const query = useRoute('GET /api/server/providers')
  return (
    <Section id="providers" title="Sign-in providers">
      <Loaded query={query}>
        {({ items }) => (
          <>
            {items.length === 0 && (
              <p class="note">
                No providers yet. The settings <code>OIDC_*</code> add one, such as Keycloak or
                Google.
              </p>
            )}
            <ul class="items">
              {items.map(provider => (
                <ProviderItem key={provider.name} provider={provider} />
              ))}
            </ul>
          </>
        )}
      </Loaded>
    </Section>
  )
}

function ProviderItem({ provider }: { provider: Provider }) {
  const { name, label, issuer, isTrusted, isFailing } = provider
  const [result, setResult] = useState<{ problem: string | null }>()
  return (
    <li>
      <div class="item-main">
        <bdi>{label}</bdi> {isTrusted && <span class="badge">Trusted</span>}{' '}
        {isFailing && !result && <span class="badge badge-bad">Did not respond</span>}
        <p class="item-details">
          <bdi>{issuer}</bdi>
        </p>
        <p class="item-details">
          Redirect URL: <bdi>{provider.redirectUrl}</bdi>
        </p>
        <p class="item-details">
          Back-channel logout URL: <bdi>{provider.logoutUrl}</bdi>
        </p>
        <p role="status" class={result?.problem ? 'issue' : 'item-details'}>
          {result && (result.problem ?? 'The provider responds.')}
        </p>
      </div>
      <span class="item-actions">
        <ActionButton
          action="Check"
          send={() => request('POST /api/server/providers/:provider/check', { provider: name })}
          onDone={setResult}
        />
      </span>
    </li>
  )
}
