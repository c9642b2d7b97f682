import type { FunctionComponent } from 'preact'
import { ErrorBoundary, lazy, LocationProvider, Route, Router, useLocation } from 'preact-iso'
import { useEffect, useErrorBoundary } from 'preact/hooks'
import { Door, Trouble } from './parts/page.tsx'
import { SignOut } from './parts/sign-out.tsx'
import { findKept } from './kept.ts'
import { Keys as Shortcuts } from './palette/keys.tsx'
import { isReadable, OURS, PATHS, toFeedPath, toOrganizationPath, toSignInPath } from './paths.ts'
import type { AccountPage, ProjectPage } from './pages/props.ts'
import { findProject, loadSession, session, type Session } from './session.ts'
import { Newer } from './worker/newer.tsx'

const place = piece(() => import('./pages/places.ts'))
const door = piece(() => import('./pages/doors.ts'))
const Feed = page(() => import('./pages/feed.tsx'))
const EventAlone = place(all => all.EventAlone)
const Users = place(all => all.Users)
const User = place(all => all.User)
const Channels = place(all => all.Channels)
const Channel = place(all => all.Channel)
const Keys = place(all => all.Keys)
const Webhooks = place(all => all.Webhooks)
const Webhook = place(all => all.Webhook)
const Notifications = place(all => all.Notifications)
const AccountSettings = place(all => all.Account)
const Organization = place(all => all.Organization)
const Server = place(all => all.Server)
const Start = place(all => all.Start)
const SignIn = door(all => all.SignIn)
const Setup = door(all => all.Setup)
const Invitation = door(all => all.Invitation)
const Reset = door(all => all.Reset)

if (/^\/p\/[^/]+(\/e\/|$)/.test(location.pathname)) void Feed.preload()

export function App() {
  const [error] = useErrorBoundary()
  useEffect(() => void loadSession(), [])
  if (error) return <Broken />
  if (!isReadable(location.pathname)) return <Missing />
  return (
    // Links that leave the application, like the one to the API reference, are the browser's.
    <LocationProvider scope={OURS}>
      <ErrorBoundary>
        <Router>
          <Route path={PATHS.home} component={Home} />
          <Route path={PATHS.setup} component={Setup} />
          <Route path={PATHS.signIn} component={SignIn} />
          <Route path={PATHS.invite} component={Invitation} />
          <Route path={PATHS.reset} component={Reset} />
          <Route path={PATHS.feed} component={SignedIn} inside={Feed} />
          <Route path={PATHS.event} component={SignedIn} inside={Feed} />
          <Route path={PATHS.users} component={SignedIn} inside={Users} />
          <Route path={PATHS.user} component={SignedIn} inside={User} />
          <Route path={PATHS.eventAlone} component={SignedInAnywhere} inside={EventAlone} />
          <Route path={PATHS.start} component={SignedIn} inside={Start} />
          <Route path={PATHS.channels} component={SignedIn} inside={Channels} />
          <Route path={PATHS.channel} component={SignedIn} inside={Channel} />
          <Route path={PATHS.keys} component={SignedIn} inside={Keys} />
          <Route path={PATHS.webhooks} component={SignedIn} inside={Webhooks} />
          <Route path={PATHS.webhook} component={SignedIn} inside={Webhook} />
          <Route path={PATHS.notifications} component={SignedInAnywhere} inside={Notifications} />
          <Route path={PATHS.account} component={SignedInAnywhere} inside={AccountSettings} />
          <Route path={PATHS.organization} component={SignedInAnywhere} inside={Organization} />
          <Route path={PATHS.server} component={SignedInAnywhere} inside={Server} />
          <Route default component={Missing} />
        </Router>
      </ErrorBoundary>
      <Newer />
      <Shortcuts />
    </LocationProvider>
  )
}

/** A page of a project, for those who may see it; everybody else is led to where they can go on. */
function SignedIn({
  inside: Inside,
  project,
  ...rest
}: {
  inside: FunctionComponent<ProjectPage>
} & Omit<ProjectPage, 'account'>) {
  const { value } = session
  if (value.kind !== 'signed_in') return <Gate session={value} />
  if (!findProject(value.account, project)) return <Missing />
  return (
    <ErrorBoundary>
      <Inside {...rest} account={value.account} project={project} />
    </ErrorBoundary>
  )
}

/** A page of no project, for who has signed in. */
function SignedInAnywhere({
  inside: Inside,
  ...rest
}: {
  inside: FunctionComponent<AccountPage>
} & Omit<AccountPage, 'account'>) {
  const { value } = session
  if (value.kind !== 'signed_in') return <Gate session={value} />
  return (
    <ErrorBoundary>
      <Inside {...rest} account={value.account} />
    </ErrorBoundary>
  )
}

/** The start: the feed of the project that was looked at last. */
function Home() {
  const { route } = useLocation()
  const { value } = session
  const account = value.kind === 'signed_in' ? value.account : undefined
  const kept = findKept('project')
  const project =
    kept !== undefined && account && findProject(account, kept)
      ? kept
      : account?.organizations.flatMap(({ projects }) => projects)[0]?.id
  useEffect(() => {
    if (project !== undefined) route(toFeedPath(project), true)
  }, [project])
  if (value.kind !== 'signed_in') return <Gate session={value} />
  if (project !== undefined) return <Waiting />
  return (
    <Door title="Nothing here yet" lead="You are in no project.">
      <p>Ask an admin of your organization for one, or for an invitation to theirs.</p>
      {value.account.organizations.map(({ id, name }) => (
        <p key={id}>
          <a href={toOrganizationPath(id)}>
            <bdi>{name}</bdi>
          </a>
        </p>
      ))}
      <p>
        <a href={PATHS.account}>Your account</a>
        <SignOut />
      </p>
    </Door>
  )
}

function Gate({ session }: { session: Exclude<Session, { kind: 'signed_in' }> }) {
  const { url, route } = useLocation()
  useEffect(() => {
    if (session.kind === 'signed_out') route(toSignInPath(url), true)
    if (session.kind !== 'failed') return
    const retry = () => void loadSession()
    addEventListener('online', retry)
    return () => removeEventListener('online', retry)
  }, [session])
  if (session.kind !== 'failed') return <Waiting />
  return (
    <Door title="Not reached">
      <Trouble failure={session.failure} onRetry={() => void loadSession()} />
    </Door>
  )
}

function Waiting() {
  return <div class="waiting" role="status" aria-label="Loading" />
}

function Missing() {
  return (
    <Door title="Nothing here" lead="There is no such page, or it is not yours to see.">
      <p>
        <a href={PATHS.home}>Go to the feed</a>
      </p>
    </Door>
  )
}

function Broken() {
  return (
    <Door title="That should not happen" lead="This page has broken. Your events are safe.">
      <button class="button" type="button" onClick={() => location.reload()}>
        Load it again
      </button>
    </Door>
  )
}

/** A page that is loaded when it is needed. After an update of the server its old name may be gone. */
function page<Props extends object>(load: () => Promise<{ default: FunctionComponent<Props> }>) {
  return lazy<FunctionComponent<Props>>(() => load().catch(() => ({ default: Outdated })))
}

/** Pages that are loaded together, of which `find` takes one. */
function piece<All>(load: () => Promise<All>) {
  return <Props extends object>(find: (all: All) => FunctionComponent<Props>) =>
    page<Props>(async () => ({ default: find(await load()) }))
}

function Outdated() {
  return (
    <Door title="There is something newer" lead="This page could not be loaded.">
      <p>The server may have been updated, or the connection was lost.</p>
      <button class="button" type="button" onClick={() => location.reload()}>
        Load it again
      </button>
    </Door>
  )
}
