import { PagedList } from '../components/paged-list.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { t, toRich } from '../locales/translate.tsx'
import { clearSession } from '../session.ts'
import { usePages } from '../components/use-pages.ts'
import { toBrowserText } from './browser-name.ts'
import { endSession, endSessions, readSessions, type Session } from './api.ts'

/** The sessions of the account, with buttons to end them. */
export function Sessions() {
  const sessions = usePages('', readSessions)

  async function end({ id, browser }: Session) {
    const result = await endSession(id)
    if (!result.ok) return showToast({ message: result.failure.message })
    sessions.change(items => items.filter(one => one.id !== id))
    showToast({ message: t('account.sessionEnded', { browser: toBrowserText(browser) }) })
  }

  return (
    <section class="section" aria-labelledby="sessions">
      <h2 id="sessions">{t('account.sessions')}</h2>
      <PagedList pages={sessions} empty={null}>
        {session => (
          <li key={session.id}>
            <SessionAbout session={session} />
            {!session.isCurrent && (
              <span class="item-actions">
                <button
                  type="button"
                  class="quiet-button"
                  aria-label={t('account.signOutName', { browser: toBrowserText(session.browser) })}
                  onClick={() => end(session)}
                >
                  {t('account.signOut')}
                </button>
              </span>
            )}
          </li>
        )}
      </PagedList>
      <ConfirmButton
        action={t('account.signOutEverywhere')}
        title={t('account.signOutEverywhereTitle')}
        lead={t('account.signOutEverywhereLead')}
        yes={t('account.signOutEverywhere')}
        isQuiet
        send={endSessions}
        onDone={clearSession}
      />
    </section>
  )
}

function SessionAbout({ session }: { session: Session }) {
  const { userAgent, browser, address, createdAt, lastSeenAt, isInstalled, isCurrent } = session
  return (
    <div class="item-main">
      <bdi title={userAgent}>{toBrowserText(browser)}</bdi>{' '}
      {isCurrent && <span class="badge badge-good">{t('account.thisBrowser')}</span>}{' '}
      {isInstalled && <span class="badge">{t('account.installed')}</span>}
      <p class="item-details">
        {toRich({
          key: 'account.sessionDetails',
          values: {
            address: <bdi>{address}</bdi>,
            seen: <Timestamp atMs={Date.parse(lastSeenAt)} hasDate />,
            method: toMethodText(session),
            time: <Timestamp atMs={Date.parse(createdAt)} hasDate />,
          },
        })}
      </p>
    </div>
  )
}

function toMethodText({ method, isMultiFactor }: Session): string {
  return t(
    method === 'password' && isMultiFactor
      ? 'account.method.passwordCode'
      : `account.method.${method}`,
  )
}
