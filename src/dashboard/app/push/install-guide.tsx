import type { PhoneLink } from '../../../push/schema.ts'
import { QrCode } from '../components/qr-code.tsx'
import { promptInstall } from '../worker/install.ts'
import type { Browser } from './state.ts'
import { t, toRich } from '../locales/translate.tsx'

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
        <section class="section" aria-labelledby="install">
          <h2 id="install">{t('push.installTitle')}</h2>
          <p class="page-lead">
            {t('push.installLead')} {!promptInstall.value && t('push.installHint')}
          </p>
          {promptInstall.value && (
            <button type="button" class="button" onClick={promptInstall.value}>
              {t('push.install')}
            </button>
          )}
        </section>
      )}
    </>
  )
}

function Phone({ link: { url, qr } }: { link: PhoneLink }) {
  return (
    <section class="section phone" aria-labelledby="phone">
      <h2 id="phone">{t('push.phone')}</h2>
      {url.startsWith('https:') ? (
        <div class="phone-way">
          <QrCode qr={qr} />
          <p class="page-lead">{toRich({ key: 'push.scan', values: { url: <bdi>{url}</bdi> } })}</p>
        </div>
      ) : (
        <p class="page-lead">
          {toRich({
            key: 'push.phoneInsecure',
            values: { origin: <bdi>{new URL(url).origin}</bdi> },
          })}
        </p>
      )}
    </section>
  )
}
