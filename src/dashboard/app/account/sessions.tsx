import { Details } from '../components/details.tsx'
import { PagedList, type Pages } from '../components/pages.tsx'
import { Moment } from '../components/timestamp.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showResult } from '../components/toast.tsx'
import { clearSession } from '../session.ts'
import type { SessionInfo } from '../../../access/guard/schema.ts'
import { request } from '../request.ts'
import { QuietButton } from '../components/quiet-button.tsx'
import { Section } from '../components/section.tsx'

/** The sessions of the account, with buttons to end them. */
export function Sessions({ sessions }: { sessions: Pages<SessionInfo> }) {
  async function end({ id, browser }: SessionInfo) {
    const result = await request('DELETE /api/sessions/:sessionId', { sessionId: id })
    if (showResult(result, `${browser} signed out.`))
      sessions.changeItems(items => items.filter(one => one.id !== id))
  }

  return (
    <Section id="sessions" title="Active sessions">
      <PagedList pages={sessions} empty={null}>
        {session => (
          <li key={session.id}>
            <SessionAbout session={session} />
            {!session.isCurrent && (
              <span class="item-actions">
                <QuietButton
                  aria-label={`Sign out ${session.browser}`}
                  onClick={() => end(session)}
                >
                  Sign out
                </QuietButton>
              </span>
            )}
          </li>
        )}
      </PagedList>
      <ConfirmButton
        action="Sign out everywhere"
        title="Sign out everywhere?"
        lead="You are signed out in every browser and installed app, including this one."
        yes="Sign out everywhere"
        isQuiet
        send={() => request('DELETE /api/sessions')}
        onDone={clearSession}
      />
    </Section>
  )
}

function SessionAbout({ session }: { session: SessionInfo }) {
  const { userAgent, browser, address, createdAt, lastSeenAt, isInstalled, isCurrent } = session
  return (
    <div class="item-main">
      <bdi title={userAgent}>{browser}</bdi>{' '}
      {isCurrent && <span class="badge badge-good">This browser</span>}{' '}
      {isInstalled && <span class="badge">Installed</span>}
      <Details>
        <bdi>{address}</bdi>
        <>
          last seen <Moment at={lastSeenAt} />
        </>
        <>
          signed in {toMethodText(session)} <Moment at={createdAt} />
        </>
      </Details>
    </div>
  )
}

const METHOD_TEXTS: Record<SessionInfo['method'], string> = {
  password: 'with a password',
  passkey: 'with a passkey',
  openid: 'with OpenID Connect',
  proxy: 'by the proxy',
  link: 'with a link',
}

function toMethodText({ method, isMultiFactor }: SessionInfo): string {
  return method === 'password' && isMultiFactor
    ? 'with a password and a code'
    : METHOD_TEXTS[method]
}
