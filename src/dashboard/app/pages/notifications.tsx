import { useEffect, useState } from 'preact/hooks'
import type { AccountPageProps } from './props.ts'
import { Layout } from '../components/layout.tsx'
import { Loaded, useQuery, useRoute } from '../components/query.tsx'
import { PATHS } from '../paths.ts'
import { syncSubscription, readBrowser } from '../push/browser.ts'
import { request } from '../request.ts'
import { CriticalEvents } from '../push/critical-events.tsx'
import { Devices } from '../push/devices.tsx'
import { InstallGuide } from '../push/install-guide.tsx'
import { QuietHours } from '../push/quiet-hours.tsx'
import { toPushState, type Browser } from '../push/state.ts'
import { ThisBrowser } from '../push/this-browser.tsx'

/** Push notifications: this browser, the account's devices, and how to add more. */
export default function NotificationsPage({ account }: AccountPageProps) {
  const accountId = account.person.id
  const [browser, setBrowser] = useState<Browser>()
  const devices = useQuery(accountId, async () => {
    await syncSubscription(accountId)
    setBrowser(await readBrowser())
    return request('GET /api/push/subscriptions')
  })
  const link = useRoute('GET /api/push/link')
  // The permission may have changed in the browser settings meanwhile.
  useEffect(() => {
    const look = async () => setBrowser(await readBrowser())
    addEventListener('focus', look)
    return () => removeEventListener('focus', look)
  }, [])

  // Both are known before anything is shown, because what comes later would push the rest down.
  const isComplete = browser !== undefined && (link.data ?? link.failure) !== undefined
  return (
    <Layout account={account} path={PATHS.notifications} title="Notifications">
      <h1 class="page-title">Notifications</h1>
      <div class="settings">
        <Loaded query={isComplete ? devices : { ...devices, data: undefined }}>
          {({ items }) => {
            const device = items.find(({ isCurrent }) => isCurrent)
            const state = browser && toPushState(browser, device?.isOn)
            return (
              <>
                {state && (
                  <ThisBrowser
                    accountId={accountId}
                    state={state}
                    device={device}
                    url={link.data?.url}
                    onChanged={devices.refetch}
                  />
                )}
                {device?.isOn && <CriticalEvents device={device} onChanged={devices.refetch} />}
                {device && <QuietHours device={device} onChanged={devices.refetch} />}
                <Devices devices={items} onChanged={devices.refetch} />
              </>
            )
          }}
        </Loaded>
        {browser && <InstallGuide browser={browser} link={link.data} />}
      </div>
    </Layout>
  )
}
