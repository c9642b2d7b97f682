import { useLocation } from 'preact-iso'
import { ActionButton } from '../components/action-button.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Item, LastUse, Section } from '../components/item.tsx'
import { Loaded, useRoute } from '../components/query.tsx'
import { Moment } from '../components/timestamp.tsx'
import { showToast } from '../components/toast.tsx'
import { PATHS } from '../paths.ts'
import { request } from '../request.ts'
import { startVisit } from './api.ts'
import { VisitProblem } from './visit-problem.tsx'

/** The account's connections to providers. Nothing is shown on a server without providers. */
export function Connections() {
  const { query } = useLocation()
  const connections = useRoute('GET /api/me/connections')
  const { data } = connections
  if (data && data.items.length === 0 && data.providers.length === 0) return null
  return (
    <Section id="connections" title="Sign-in providers">
      <Loaded query={connections}>
        {({ items, providers }) => (
          <>
            <VisitProblem query={query} providers={providers} />
            <ul class="items">
              {items.map(({ id, label, createdAt, lastUsedAt }) => (
                <Item
                  key={id}
                  title={<bdi>{label}</bdi>}
                  details={[
                    <Moment word="connected" at={createdAt} />,
                    <LastUse at={lastUsedAt} />,
                  ]}
                >
                  <ConfirmButton
                    action="Disconnect"
                    title="Disconnect"
                    name={label}
                    lead="You can no longer sign in there. Open sessions stay."
                    yes="Disconnect"
                    isQuiet
                    send={() =>
                      request('DELETE /api/me/connections/:connectionId', { connectionId: id })
                    }
                    onDone={() => {
                      showToast(`${label} disconnected.`)
                      void connections.refetch()
                    }}
                  />
                </Item>
              ))}
            </ul>
            <div class="actions">
              {providers
                .filter(({ name }) => !items.some(({ provider }) => provider === name))
                .map(({ name, label }) => (
                  <ActionButton
                    key={name}
                    action={`Connect ${label}`}
                    send={() =>
                      startVisit({ provider: name, purpose: 'connect', next: PATHS.account })
                    }
                  />
                ))}
            </div>
          </>
        )}
      </Loaded>
    </Section>
  )
}
