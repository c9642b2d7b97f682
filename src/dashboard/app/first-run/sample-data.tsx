import { useLocation } from 'preact-iso'
import type { Account } from '../../../access/sign-in/schema.ts'
import { PATHS, toFeedPath } from '../paths.ts'
import { request } from '../request.ts'
import { findProject, isAtLeast, loadSession } from '../session.ts'
import { useAction } from '../components/use-action.ts'
import { QuietButton } from '../components/buttons.tsx'

interface SampleDataOptions {
  account: Account
  project: string
}

/** Offers a project with sample data, or leads to it. Admins see it. */
export function SampleDataOffer({ account, project }: SampleDataOptions) {
  const { route } = useLocation()
  const organization = findProject(account, project)?.organization
  const { act, isBusy, failure } = useAction()
  if (!organization || !isAtLeast(organization.role, 'admin')) return null
  const sample = organization.projects.find(({ isSample }) => isSample)

  async function open() {
    const id = sample?.id ?? (await create())
    if (id !== undefined) route(toFeedPath(id))
  }

  async function create(): Promise<string | undefined> {
    const place = { organizationId: organization?.id ?? '' }
    const created = await act(() =>
      request('POST /api/organizations/:organizationId/sample-project', place),
    )
    if (!created?.ok) return undefined
    await loadSession()
    return created.data.id
  }

  return (
    <>
      <QuietButton aria-disabled={isBusy} onClick={open}>
        {isBusy ? 'Creating the events…' : 'Look around with sample data'}
      </QuietButton>
      {failure && <span role="alert">{failure.message}</span>}
    </>
  )
}

/** Says that a project has sample data. Admins remove it here. */
export function SampleDataNotice({ account, project }: SampleDataOptions) {
  const { route } = useLocation()
  const organization = findProject(account, project)?.organization
  const { act, isBusy, failure } = useAction()
  if (!organization) return null
  const place = { organizationId: organization.id }

  async function remove() {
    const send = () => request('DELETE /api/organizations/:organizationId/sample-project', place)
    if (!(await act(send))?.ok) return
    await loadSession()
    route(PATHS.home, true)
  }

  return (
    <p class="note">
      <span>{failure ? failure.message : 'Sample data of an invented shop.'}</span>
      {isAtLeast(organization.role, 'admin') && (
        <QuietButton aria-disabled={isBusy} onClick={remove}>
          {isBusy ? 'Removing it…' : 'Remove it'}
        </QuietButton>
      )}
    </p>
  )
}
