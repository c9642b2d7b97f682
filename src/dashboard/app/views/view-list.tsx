import { useState } from 'preact/hooks'
import type { Account } from '../../../access/sign-in/schema.ts'
import type { View, ViewEdit } from '../../../log/views/schema.ts'
import { pickChanges } from '../changes.ts'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { Icon } from '../components/icon.tsx'
import { showResult } from '../components/toast.tsx'
import { toReaderText } from '../feed/reader-dates.ts'
import { EMPTY_SEARCH, toSearchPath, type Search } from '../feed/search.ts'
import { useViews, viewChanges } from '../feed/use-channels.ts'
import { toPlural } from '../locale.ts'
import { PATHS } from '../paths.ts'
import { request, type Result } from '../request.ts'
import { isOffHere } from '../push/seen.ts'
import { FailedPart, lazyPages, loadWithPageStyle } from '../lazy-page.tsx'
import { isAllowed } from '../session.ts'
import { QuietButton } from '../components/buttons.tsx'

// Its dialog needs the styles of pages.
const loadButton = () => loadWithPageStyle(Promise.resolve({ ConfirmButton }))
const DeleteButton = lazyPages(loadButton, FailedPart)('ConfirmButton')

/** The server stops counting new events here. */
const MAX_NEW = 100

interface ViewListOptions {
  account: Account
  project: string
  search: Search
}

/** The views of a project in the sidebar. */
export function ViewList({ account, project, search }: ViewListOptions) {
  const place = { projectId: project }
  const views = useViews(project)
  const [isManaging, setManaging] = useState(false)
  const items = views.data?.items ?? []
  const mayShare = isAllowed(account, project, 'member')
  const text = search.text.trim()

  /** Sends a change, shows its failure, and reads the views again. Returns whether it succeeded. */
  async function change(send: Promise<Result<unknown>>) {
    const result = await send
    showResult(result)
    viewChanges.value += 1
    return result.ok
  }

  /** Marks all present events of a view as seen. */
  async function see({ id: viewId }: View) {
    const now = await request('GET /api/projects/:projectId', place)
    if (!now.ok) return
    const mark = { ...place, viewId, seq: now.data.head }
    await change(request('PUT /api/projects/:projectId/views/:viewId/read', mark))
  }

  function ring({ id: viewId, hasBell }: View) {
    const bell = { ...place, viewId, isOn: !hasBell }
    return change(request('PUT /api/projects/:projectId/views/:viewId/bell', bell))
  }

  function edit({ id: viewId }: View, changes: ViewEdit) {
    const edited = { ...place, viewId, ...changes }
    return change(request('PATCH /api/projects/:projectId/views/:viewId', edited))
  }

  if (items.length === 0) return null
  return (
    <section class="views" aria-labelledby="views">
      <h2 id="views">Views</h2>
      <ul class="channel-list">
        {items.map(view => (
          <li key={view.id}>
            <a
              href={toSearchPath(project, { ...EMPTY_SEARCH, text: view.q })}
              aria-current={view.q === text ? 'page' : undefined}
              title={toReaderText(view.q)}
              onClick={() => void see(view)}
            >
              <bdi class="channel-name">{view.name}</bdi>
              <NewEvents view={view} />
            </a>
            <button
              type="button"
              class="bell"
              aria-pressed={view.hasBell}
              aria-label={`Notify me of new events in ${view.name}`}
              title={view.hasBell ? 'You are notified of new events' : 'You are not notified'}
              onClick={() => void ring(view)}
            >
              <Icon name={view.hasBell ? 'notifications' : 'muted'} />
            </button>
            {isManaging && (!view.isShared || mayShare) && (
              <div class="edit-view">
                <ViewForm view={view} mayShare={mayShare} onSave={changes => edit(view, changes)} />
                <DeleteButton
                  isQuiet
                  action={`Delete ${view.name}`}
                  title="Delete"
                  name={view.name}
                  lead={`Its events stay.${view.isShared ? ' All members lose the view.' : ''}`}
                  yes="Delete view"
                  send={async () => {
                    const target = { ...place, viewId: view.id }
                    const result = await request(
                      'DELETE /api/projects/:projectId/views/:viewId',
                      target,
                    )
                    // Another member may have deleted it.
                    viewChanges.value += 1
                    return result
                  }}
                  onDone={() => {}}
                />
              </div>
            )}
          </li>
        ))}
      </ul>
      {items.some(({ hasBell }) => hasBell) && isOffHere() && (
        <a class="quiet-button" href={PATHS.notifications}>
          Turn on notifications here
        </a>
      )}
      <QuietButton aria-expanded={isManaging} onClick={() => setManaging(!isManaging)}>
        Manage views
      </QuietButton>
    </section>
  )
}

function NewEvents({ view: { newEvents, isPartial } }: { view: View }) {
  if (!newEvents) return null
  return (
    <span class="unread" aria-label={toPlural(newEvents, 'new event')}>
      {newEvents}
      {(isPartial || newEvents >= MAX_NEW) && '+'}
    </span>
  )
}

interface ViewFormOptions {
  view: Pick<View, 'name' | 'isShared'>
  mayShare: boolean
  /** Returns whether the changes were accepted. */
  onSave(changes: ViewEdit): Promise<boolean>
}

function ViewForm({ view, mayShare, onSave }: ViewFormOptions) {
  // As it was when the form was opened, or saved last.
  const [before, setBefore] = useState(view)

  async function submit(event: SubmitEvent & { currentTarget: HTMLFormElement }) {
    event.preventDefault()
    const form = event.currentTarget
    const data = new FormData(form)
    const after = { name: String(data.get('name') ?? ''), isShared: data.has('isShared') }
    if (!(await onSave(pickChanges<ViewEdit>(before, after)))) return
    setBefore(after)
    form.removeAttribute('data-changed')
  }

  return (
    <form class="name-view" onSubmit={submit}>
      <label>
        Name
        <span class="input">
          <input name="name" required maxLength={60} defaultValue={before.name} />
        </span>
      </label>
      {mayShare && (
        <label>
          <input type="checkbox" name="isShared" defaultChecked={before.isShared} /> Share with all
          members
        </label>
      )}
      <button class="button">Save</button>
    </form>
  )
}
