import type { FunctionComponent } from 'preact'
import { ErrorBoundary, LocationProvider, Route, Router, useLocation } from 'preact-iso'
import { useEffect, useErrorBoundary } from 'preact/hooks'
import { LoadingPage, StandalonePage, ErrorNotice } from './components/standalone-page.tsx'
import { findFeedProject, isSignIn } from './early-requests.ts'
import { lazyPage, lazyPages, loadWithPageStyle, loadWithStyle } from './lazy-page.tsx'
import { readStored } from './storage.ts'
import { Shortcuts } from './palette/shortcuts.tsx'
import {
  isDecodable,
  APP_PATH,
  PATHS,
  toFeedPath,
  toOrganizationPath,
  toSignInPath,
} from './paths.ts'
import type { AccountPageProps, ProjectPageProps } from './pages/props.ts'
import {
  findBarred,
  findProject,
  hasSeveralProjects,
  loadSession,
  session,
  hasEnded,
  type Session,
} from './session.ts'
import { hasUpdate, applyUpdate } from './worker/update.ts'
import { density } from './feed/display.ts'
import { readLastEvents } from './feed/last-events.ts'
import { Rows } from './feed/rows.tsx'

const loadAuthPages = () => import('./pages/auth-pages.ts')
const loadProjectPages = () => loadWithPageStyle(import('./pages/project-pages.ts'))
const authPage = lazyPages(loadAuthPages)
const startPage = lazyPages(() => loadWithPageStyle(loadAuthPages()))
const projectPage = lazyPages(loadProjectPages)
const settingsPage = lazyPages(() => loadWithPageStyle(import('./pages/settings-pages.ts')))
const insightsPage = lazyPages(() => loadWithStyle('/assets/insights.css', loadProjectPages()))
const Feed = lazyPage(() => import('./pages/feed.tsx'))
const EventAlone = authPage(all => all.EventAlone)
const Users = projectPage(all => all.Users)
const User = projectPage(all => all.User)
const Channels = projectPage(all => all.Channels)
const Channel = projectPage(all => all.Channel)
const Overview = insightsPage(all => all.Overview)
const Insights = insightsPage(all => all.Insights)
const Keys = settingsPage(all => all.Keys)
const Webhooks = settingsPage(all => all.Webhooks)
const Webhook = settingsPage(all => all.Webhook)
const Notifications = settingsPage(all => all.Notifications)
const AccountSettings = settingsPage(all => all.Account)
const Organization = settingsPage(all => all.Organization)
const Server = settingsPage(all => all.Server)
const NotFound = settingsPage(all => all.NotFound)
const Start = startPage(all => all.Start)
const NoProjects = authPage(all => all.NoProjects)
const SignIn = authPage(all => all.SignIn)
const Setup = authPage(all => all.Setup)
const Invite = authPage(all => all.Invite)
const Reset = authPage(all => all.Reset)

if (findFeedProject(location.pathname)) void Feed.preload()

export function App() {
  const [error] = useErrorBoundary()
  useEffect(() => void (isSignIn(location.pathname) || loadSession()), [])
  if (error) return <CrashPage />
  if (!isDecodable(location.pathname)) return <NotFoundPage />
  return (
    // Other links, such as the API reference, are left to the browser.
    <LocationProvider scope={APP_PATH}>
      <ErrorBoundary>
        <Router>
          <Route path={PATHS.home} component={HomeRedirect} />
          <Route path={PATHS.setup} component={Setup} />
          <Route path={PATHS.signIn} component={SignIn} />
          <Route path={PATHS.invite} component={Invite} />
          <Route path={PATHS.reset} component={Reset} />
          <Route path={PATHS.feed} component={ProjectRoute} inside={Feed} />
          <Route path={PATHS.event} component={ProjectRoute} inside={Feed} />
          <Route path={PATHS.users} component={ProjectRoute} inside={Users} />
          <Route path={PATHS.user} component={ProjectRoute} inside={User} />
          <Route path={PATHS.eventLink} component={AccountRoute} inside={EventAlone} />
          <Route path={PATHS.start} component={ProjectRoute} inside={Start} />
          <Route path={PATHS.channels} component={ProjectRoute} inside={Channels} />
          <Route path={PATHS.channel} component={ProjectRoute} inside={Channel} />
          <Route path={PATHS.insights} component={ProjectRoute} inside={Insights} />
          <Route path={PATHS.keys} component={ProjectRoute} inside={Keys} />
          <Route path={PATHS.webhooks} component={ProjectRoute} inside={Webhooks} />
          <Route path={PATHS.webhook} component={ProjectRoute} inside={Webhook} />
          <Route path={PATHS.overview} component={AccountRoute} inside={Overview} />
          <Route path={PATHS.notifications} component={AccountRoute} inside={Notifications} />
          <Route path={PATHS.account} component={AccountRoute} inside={AccountSettings} />
          <Route path={PATHS.organization} component={AccountRoute} inside={Organization} />
          <Route path={PATHS.organizationTab} component={AccountRoute} inside={Organization} />
          <Route path={PATHS.server} component={AccountRoute} inside={Server} />
          <Route default component={NotFoundRoute} />
        </Router>
      </ErrorBoundary>
      <UpdateNotice />
      <Shortcuts />
    </LocationProvider>
  )
}

/** Shows a page of a project to its members. Others get the sign-in or not-found page. */
function ProjectRoute({
  inside: Inside,
  project,
  ...rest
}: {
  inside: FunctionComponent<ProjectPageProps>
} & Omit<ProjectPageProps, 'account'>) {
  const { value } = session
  if (value.kind !== 'signed_in') return <SignInGate session={value} project={project} />
  if (!findProject(value.account, project)) {
    return findBarred(value.account) ? <HomeRedirect /> : <NotFoundRoute />
  }
  return (
    <ErrorBoundary>
      <Inside {...rest} account={value.account} project={project} />
    </ErrorBoundary>
  )
}

/** Shows a page outside of projects to signed-in accounts. */
function AccountRoute({
  inside: Inside,
  ...rest
}: {
  inside: FunctionComponent<AccountPageProps>
} & Omit<AccountPageProps, 'account'>) {
  const { value } = session
  if (value.kind !== 'signed_in') return <SignInGate session={value} />
  return (
    <ErrorBoundary>
      <Inside {...rest} account={value.account} />
    </ErrorBoundary>
  )
}

/** Redirects to the overview of several projects, or to the feed of the only one. */
function HomeRedirect() {
  const { route } = useLocation()
  const { value } = session
  const account = value.kind === 'signed_in' ? value.account : undefined
  const project = account?.organizations.flatMap(({ projects }) => projects)[0]?.id
  const hasSeveral = account !== undefined && hasSeveralProjects(account)
  // Its page explains what is missing.
  const barred = account && findBarred(account)?.id
  useEffect(() => {
    if (hasSeveral) route(PATHS.overview, true)
    else if (project !== undefined) route(toFeedPath(project), true)
    else if (barred !== undefined) route(toOrganizationPath(barred), true)
  }, [project, hasSeveral, barred])
  if (value.kind !== 'signed_in')
    return <SignInGate session={value} project={readStored('project')} />
  if (project !== undefined) return <LoadingPage />
  return <NoProjects account={value.account} />
}

interface GateOptions {
  session: Exclude<Session, { kind: 'signed_in' }>
  /** The project whose last events are shown while the server cannot be reached. */
  project?: string | undefined
}

function SignInGate({ session, project }: GateOptions) {
  const { url, route } = useLocation()
  useEffect(() => {
    if (session.kind === 'signed_out') route(toSignInPath(url), true)
    if (session.kind !== 'failed') return
    const retry = () => void loadSession()
    addEventListener('online', retry)
    return () => removeEventListener('online', retry)
  }, [session])
  if (session.kind !== 'failed') return <LoadingPage />
  return (
    <StandalonePage title="Tidings could not be loaded">
      <ErrorNotice failure={session.failure} onRetry={() => void loadSession()} />
      {project !== undefined && <LastEvents project={project} />}
    </StandalonePage>
  )
}

/** Says that a page does not exist, next to the navigation of a signed-in account. */
function NotFoundRoute() {
  const { value } = session
  if (value.kind === 'unknown') return <LoadingPage />
  if (value.kind !== 'signed_in') return <NotFoundPage />
  return (
    <ErrorBoundary>
      <NotFound account={value.account} />
    </ErrorBoundary>
  )
}

function NotFoundPage() {
  return (
    <StandalonePage
      title="Page not found"
      lead="It does not exist, or you do not have access to it."
    >
      <p>
        <a href={PATHS.home}>Go to the feed</a>
      </p>
    </StandalonePage>
  )
}

function CrashPage() {
  return (
    <StandalonePage
      title="Something went wrong"
      lead="This page has crashed. Your events are safe."
    >
      <button class="button" type="button" onClick={() => location.reload()}>
        Reload
      </button>
    </StandalonePage>
  )
}

/** Offers to reload when a new version is available, or the session has ended. */
function UpdateNotice() {
  return (
    <div class="toast update-notice" role="status">
      {(hasEnded.value || hasUpdate.value) && (
        <p>
          <span>
            {hasEnded.value
              ? 'Your session has ended. Copy what you need'
              : 'A new version is available'}
          </span>
          <button type="button" onClick={() => void applyUpdate()}>
            Reload
          </button>
        </p>
      )}
    </div>
  )
}

/** The last events of a project that this browser has shown, while the server cannot be reached. */
function LastEvents({ project }: { project: string }) {
  const rows = readLastEvents(project)
  if (rows.length === 0) return null
  return (
    <section class="last-events" aria-labelledby="last-events">
      <h2 id="last-events">Last events seen in this browser</h2>
      <div id="feed" class={density.value}>
        <Rows project={project} rows={rows} hasEntrance={() => false} />
      </div>
    </section>
  )
}
