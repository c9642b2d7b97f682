import { useEffect, useState } from 'preact/hooks'
import type { AccountPage } from './props.ts'
import { SettingsFrame } from '../parts/frame.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { useAnswer } from '../parts/use-answer.ts'
import { PATHS } from '../paths.ts'
import { heal, readBrowser } from '../push/browser.ts'
import { readDevices, readPageLink } from '../push/calls.ts'
import { Devices } from '../push/devices.tsx'
import { Elsewhere } from '../push/elsewhere.tsx'
import { QuietHours } from '../push/quiet-hours.tsx'
import { toState, type Browser } from '../push/state.ts'
import { ThisBrowser } from '../push/this-browser.tsx'

/** Whether this browser notifies, what helps where it does not, and the person's other devices. */
export default function NotificationsPage({ account }: AccountPage) {
  const person = account.person.id
  const [browser, setBrowser] = useState<Browser>()
  const devices = useAnswer(person, async () => {
    await heal(person)
    setBrowser(await readBrowser())
    return readDevices()
  })
  const link = useAnswer('link', readPageLink)
  // Whoever has changed a setting comes back to the page.
  useEffect(() => {
    const look = async () => setBrowser(await readBrowser())
    addEventListener('focus', look)
    return () => removeEventListener('focus', look)
  }, [])

  return (
    <SettingsFrame account={account} path={PATHS.notifications} title="Notifications">
      <h1 class="page-title">Notifications</h1>
      <div class="settings">
        <Loaded of={devices}>
          {({ items }) => {
            const device = items.find(({ isCurrent }) => isCurrent)
            const state = browser && toState(browser, device?.isOn)
            return (
              <>
                {state && (
                  <ThisBrowser
                    person={person}
                    state={state}
                    device={device}
                    url={link.data?.url}
                    onChanged={devices.read}
                  />
                )}
                {device && <QuietHours device={device} onChanged={devices.read} />}
                <Devices devices={items} onChanged={devices.read} />
              </>
            )
          }}
        </Loaded>
        {browser && <Elsewhere browser={browser} link={link.data} />}
      </div>
    </SettingsFrame>
  )
}
