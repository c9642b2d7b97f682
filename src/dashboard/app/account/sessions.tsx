import { Listed } from '../parts/listed.tsx'
import { Moment } from '../parts/moment.tsx'
import { Sure } from '../parts/sure.tsx'
import { tell } from '../parts/undo.tsx'
import { forgetSession } from '../session.ts'
import { usePages } from '../users/use-pages.ts'
import { endSession, endSessions, readSessions, type Session } from './calls.ts'

/** Where somebody is signed in, and the way to end it. */
export function Sessions() {
  const sessions = usePages('', readSessions)

  async function end({ id, browser }: Session) {
    const answer = await endSession(id)
    if (!answer.ok) return tell({ said: answer.failure.message })
    sessions.change(items => items.filter(one => one.id !== id))
    tell({ said: `${browser} is signed out.` })
  }

  return (
    <section class="part" aria-labelledby="sessions">
      <h2 id="sessions">Where you are signed in</h2>
      <Listed pages={sessions} nothing={null}>
        {session => (
          <li key={session.id}>
            <SessionAbout session={session} />
            {!session.isCurrent && (
              <span class="item-acts">
                <button
                  type="button"
                  class="quiet-button"
                  aria-label={`Sign out ${session.browser}`}
                  onClick={() => end(session)}
                >
                  Sign out
                </button>
              </span>
            )}
          </li>
        )}
      </Listed>
      <Sure
        action="Sign out everywhere"
        title="Sign out everywhere?"
        lead="Every browser and every installed app is signed out, this one, too."
        yes="Sign out everywhere"
        isQuiet
        send={endSessions}
        onDone={forgetSession}
      />
    </section>
  )
}

function SessionAbout({ session }: { session: Session }) {
  const { userAgent, browser, address, createdAt, lastSeenAt, isInstalled, isCurrent } = session
  return (
    <div class="item-what">
      <span title={userAgent}>{browser}</span>{' '}
      {isCurrent && <span class="badge badge-good">This one</span>}{' '}
      {isInstalled && <span class="badge">Installed</span>}
      <p class="item-about">
        <bdi>{address}</bdi> · seen <Moment atMs={Date.parse(lastSeenAt)} isFar /> · signed in{' '}
        <Moment atMs={Date.parse(createdAt)} isFar />
      </p>
    </div>
  )
}
