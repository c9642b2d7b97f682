import { useEffect } from 'preact/hooks'
import type { Account } from '../../../access/sign-in/schema.ts'
import { useQuery } from '../components/query.tsx'
import { PATHS, toOrganizationPath, toProjectPath } from '../paths.ts'
import { readBrowser } from '../push/browser.ts'
import { parseRegistration, toPushState } from '../push/state.ts'
import { REGISTRATION_KEY } from '../push/unsubscribe.ts'
import { request, type Result } from '../request.ts'
import { findProject, isAllowed } from '../session.ts'
import { readStored } from '../storage.ts'
import { openChecklist } from '../components/layout.tsx'

interface Done {
  push: boolean
  invite: boolean
  webhook: boolean
}

interface ChecklistOptions {
  account: Account
  project: string
  /** True once the project has an event. */
  hasEvent: boolean
}

/** The four steps of a new project, with those that are done. */
export function Checklist({ account, project, hasEvent }: ChecklistOptions) {
  const organization = findProject(account, project)?.organization.id ?? ''
  const isAdmin = isAllowed(account, project, 'admin')
  const { data } = useQuery(project, () => readDone({ account, project, organization, isAdmin }))
  const steps: { name: keyof Done | 'event'; isDone: boolean; href?: string }[] = [
    { name: 'event', isDone: hasEvent },
    { name: 'push', isDone: data?.push === true, href: PATHS.notifications },
  ]
  if (isAdmin) {
    steps.push(
      {
        name: 'invite',
        isDone: data?.invite === true,
        href: toOrganizationPath(organization, 'members'),
      },
      {
        name: 'webhook',
        isDone: data?.webhook === true,
        href: toProjectPath('webhooks', project),
      },
    )
  }
  const done = steps.filter(({ isDone }) => isDone).length
  const isOpen = done < steps.length
  useEffect(() => {
    openChecklist.value = isOpen ? project : undefined
  }, [project, isOpen])

  // The steps keep their place while it is not known which of them are done.
  return (
    <section class="checklist" aria-labelledby="checklist" aria-busy={!data}>
      <h2 id="checklist">Set up this project</h2>
      <p>{data ? `${done} of ${steps.length} done` : 'Checking which steps are done…'}</p>
      <ol>
        {steps.map(({ name, isDone, href }) => (
          <li key={name} class={isDone ? 'done' : undefined}>
            <span>
              {href !== undefined && !isDone ? <a href={href}>{TEXTS[name]}</a> : TEXTS[name]}
              {isDone && <span class="visually-hidden"> (done)</span>}
            </span>
          </li>
        ))}
      </ol>
    </section>
  )
}

const TEXTS = {
  event: 'Send the first event',
  push: 'Turn on notifications in this browser',
  invite: 'Invite a colleague',
  webhook: 'Add the first webhook',
} as const satisfies Record<keyof Done | 'event', string>

/** Reads which steps are done. A step that cannot be read counts as open. */
async function readDone({
  account,
  project,
  organization,
  isAdmin,
}: Pick<ChecklistOptions, 'account' | 'project'> & {
  organization: string
  isAdmin: boolean
}): Promise<Result<Done>> {
  const place = { organizationId: organization }
  const [browser, members, invites, webhooks] = await Promise.all([
    readBrowser(),
    isAdmin ? request('GET /api/organizations/:organizationId', place) : undefined,
    isAdmin ? request('GET /api/organizations/:organizationId/invites', place) : undefined,
    isAdmin ? request('GET /api/projects/:projectId/webhooks', { projectId: project }) : undefined,
  ])
  const known = parseRegistration(readStored(REGISTRATION_KEY))
  const isRegistered = known?.account === account.person.id
  return {
    ok: true,
    data: {
      push: toPushState(browser, isRegistered) === 'on',
      invite:
        (members?.ok === true && members.data.members > 1) ||
        (invites?.ok === true && invites.data.items.length > 0),
      webhook: webhooks?.ok === true && webhooks.data.items.length > 0,
    },
  }
}
