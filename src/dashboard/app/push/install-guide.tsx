import type { PhoneLink } from '../../../delivery/push/subscription-schema.ts'
import { QrCode } from '../components/qr-code.tsx'
import { promptInstall } from '../worker/install.ts'
import type { Browser } from './state.ts'
import { Section } from '../components/item.tsx'

interface InstallGuideOptions {
  browser: Browser
  link: PhoneLink | undefined
}

/** Explains how to open Tidings on a phone and how to install it as an app. */
export function InstallGuide({
  browser: { isSecure, isIos, isInstalled },
  link,
}: InstallGuideOptions) {
  return (
    <>
      {link && <Phone link={link} />}
      {isSecure && !isInstalled && !isIos && (
        <Section id="install" title="Install as an app">
          <p class="page-lead">
            The installed app has its own window and icon. With notifications, it stays signed in
            for a year.{' '}
            {!promptInstall.value &&
              'Look for “Install” next to the address or in the browser menu. Safari on a Mac has “Add to Dock”.'}
          </p>
          {promptInstall.value && (
            <button type="button" class="button" onClick={promptInstall.value}>
              Install
            </button>
          )}
        </Section>
      )}
    </>
  )
}

function Phone({ link: { url, qr } }: { link: PhoneLink }) {
  return (
    <section class="section phone" aria-labelledby="phone">
      <h2 id="phone">On your phone</h2>
      {url.startsWith('https:') ? (
        <div class="phone-way">
          <QrCode qr={qr} />
          <p class="page-lead">
            Scan this code, or open <bdi>{url}</bdi>. Then sign in and turn on notifications.
          </p>
        </div>
      ) : (
        <p class="page-lead">
          Phones require HTTPS for notifications. This server uses <bdi>{new URL(url).origin}</bdi>.
          Put it behind an HTTPS proxy and set BASE_URL, or ask its operator to.
        </p>
      )}
    </section>
  )
}
