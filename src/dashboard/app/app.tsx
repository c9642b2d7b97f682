import type { FunctionComponent } from 'preact'
import { ErrorBoundary, lazy, LocationProvider, Route, Router, useLocation } from 'preact-iso'
import { useEffect, useErrorBoundary } from 'preact/hooks'
import { LoadingPage, StandalonePage, ErrorNotice } from './components/standalone-page.tsx'
import { isSignIn } from './early-requests.ts'
import { lazyPages, loadWithPageStyle } from './lazy-page.tsx'
import Feed from './pages/feed.tsx'
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
import { readLastEvents } from './feed/last-events.ts'
import { Rows } from './feed/rows.tsx'

const loadAuthPages = () => import('./pages/auth-pages.ts')
const authPage = suspendedPages(loadAuthPages)
const startPage = suspendedPages(() => loadWithPageStyle(loadAuthPages()))
const projectPage = suspendedPages(() => loadWithPageStyle(import('./pages/project-pages.ts')))
const settingsPage = suspendedPages(() => loadWithPageStyle(import('./pages/settings-pages.ts')))
const NotFound = settingsPage('NotFound')
const NoProjects = authPage('NoProjects')
const Organization = settingsPage('Organization')

const AUTH_PAGES = {
  setup: authPage('Setup'),
  signIn: authPage('SignIn'),
  invite: authPage('Invite'),
  reset: authPage('Reset'),
} satisfies Pages<object>
/** The pages of a project, for its members. */
const PROJECT_PAGES = {
  feed: Feed,
  event: Feed,
  open: projectPage('Open'),
  users: projectPage('Users'),
  user: projectPage('User'),
  start: startPage('Start'),
  channels: projectPage('Channels'),
  channel: projectPage('Channel'),
  insights: projectPage('Insights'),
  heartbeats: settingsPage('Heartbeats'),
  hooks: settingsPage('Hooks'),
  keys: settingsPage('Keys'),
  rules: settingsPage('Rules'),
  silences: settingsPage('Silences'),
  webhooks: settingsPage('Webhooks'),
  webhook: settingsPage('Webhook'),
} satisfies Pages<ProjectPageProps>
/** The other pages of an account. */
const ACCOUNT_PAGES = {
  eventLink: suspendedPages(() => import('./after-load.ts'))('EventAlone'),
  overview: projectPage('Overview'),
  notifications: settingsPage('Notifications'),
  account: settingsPage('Account'),
  organization: Organization,
  organizationTab: Organization,
  server: settingsPage('Server'),
} satisfies Pages<AccountPageProps>

type Pages<Props> = Partial<Record<keyof typeof PATHS, FunctionComponent<Props>>>

/** Loads pages like `lazyPages`. The router shows the page before until then. */
function suspendedPages<All>(load: () => Promise<All>) {
  const toPage = lazyPages(load)
  return <Name extends keyof All>(name: Name) => {
    const Page = toPage(name)
    return lazy(async () => {
      await Page.preload()
      return { default: Page }
    })
  }
}

/** Lists pages with their paths. */
function list<Props>(pages: Pages<Props>) {
  return Object.entries(pages).map(
    ([name, page]) => [PATHS[name as keyof Pages<Props>], page] as const,
  )
}

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
          {/* Without keys, so that the feed stays when one of its events is opened. */}
          {list(AUTH_PAGES).map(([path, page]) => (
            <Route path={path} component={page} />
          ))}
          {list(PROJECT_PAGES).map(([path, page]) => (
            <Route path={path} component={ProjectRoute} inside={page} />
          ))}
          {list(ACCOUNT_PAGES).map(([path, page]) => (
            <Route path={path} component={AccountRoute} inside={page} />
          ))}
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
      <div id="feed">
        <Rows project={project} rows={rows} hasEntrance={() => false} />
      </div>
    </section>
  )
}
