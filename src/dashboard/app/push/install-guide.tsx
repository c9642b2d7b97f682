import type { PhoneLink } from '../../../push/schema.ts'
import { promptInstall } from '../worker/install.ts'
import type { Browser } from './state.ts'

/** The light edge that readers of the code need around it, in modules. */
const EDGE = 4

interface InstallGuideOptions {
  browser: Browser
  link: PhoneLink | undefined
}

/** How Tidings gets onto a phone, or among the apps of this machine. */
export function InstallGuide({
  browser: { isSecure, isIos, isInstalled },
  link,
}: InstallGuideOptions) {
  return (
    <>
      {link && <Phone link={link} />}
      {isSecure && !isInstalled && !isIos && (
        <section class="section" aria-labelledby="install">
          <h2 id="install">As an app</h2>
          <p class="page-lead">
            Installed, Tidings has a window and an icon of its own, and stays signed in for a year.{' '}
            {!promptInstall.value &&
              'Browsers offer it beside the address or in their menu; Safari on a Mac as “Add to Dock”.'}
          </p>
          {promptInstall.value && (
            <button type="button" class="button" onClick={promptInstall.value}>
              Install
            </button>
          )}
        </section>
      )}
    </>
  )
}

function Phone({ link: { url, qr } }: { link: PhoneLink }) {
  const side = qr.size + 2 * EDGE
  return (
    <section class="section phone" aria-labelledby="phone">
      <h2 id="phone">On your phone</h2>
      {url.startsWith('https:') ? (
        <div class="phone-way">
          <svg viewBox={`${-EDGE} ${-EDGE} ${side} ${side}`} role="img" aria-label="QR code">
            <path d={qr.path} />
          </svg>
          <p class="page-lead">
            Point its camera here, or open <bdi>{url}</bdi>. Sign in, and turn notifications on.
          </p>
        </div>
      ) : (
        <p class="page-lead">
          Phones take notifications over https. This server goes by <bdi>{new URL(url).origin}</bdi>
          : whoever runs it can put it behind a proxy with a certificate and set BASE_URL.
        </p>
      )}
    </section>
  )
}
