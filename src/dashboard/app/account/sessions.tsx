import type { SessionInfo } from '../../../access/guard/schema.ts'
import { ActionButton } from '../components/action-button.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Item, Section } from '../components/item.tsx'
import { PagedList, type Pages } from '../components/pages.tsx'
import { Moment } from '../components/timestamp.tsx'
import { showToast } from '../components/toast.tsx'
import { request } from '../request.ts'
import { clearSession } from '../session.ts'

/** The sessions of the account, with buttons to end them. */
export function Sessions({ sessions }: { sessions: Pages<SessionInfo> }) {
  return (
    <Section id="sessions" title="Active sessions">
      <PagedList pages={sessions} empty={null}>
        {session => (
          <Session key={session.id} session={session} onEnded={() => void sessions.refetch()} />
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

function Session({ session, onEnded }: { session: SessionInfo; onEnded(): void }) {
  const { userAgent, browser, address, createdAt, lastSeenAt, isInstalled, isCurrent } = session
  return (
    <Item
      title={
        <>
          <bdi title={userAgent}>{browser}</bdi>{' '}
          {isCurrent && <span class="badge badge-good">This browser</span>}{' '}
          {isInstalled && <span class="badge">Installed</span>}
        </>
      }
      details={[
        <bdi>{address}</bdi>,
        <Moment word="last seen" at={lastSeenAt} />,
        <Moment word={`signed in ${toMethodText(session)}`} at={createdAt} />,
      ]}
    >
      {!isCurrent && (
        <ActionButton
          action="Sign out"
          label={`Sign out ${browser}`}
          send={() => request('DELETE /api/sessions/:sessionId', { sessionId: session.id })}
          onDone={() => {
            showToast(`${browser} signed out.`)
            onEnded()
          }}
        />
      )}
    </Item>
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
