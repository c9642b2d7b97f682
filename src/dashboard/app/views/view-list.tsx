import { useState } from 'preact/hooks'
import type { Account } from '../../../access/sign-in/schema.ts'
import type { View, ViewEdit } from '../../../log/views/schema.ts'
import { pickChanges } from '../changes.ts'
import { Icon } from '../components/icon.tsx'
import { showResult } from '../components/toast.tsx'
import { MINUTE_MS, useRoute } from '../components/query.tsx'
import { toReaderText } from '../feed/reader-dates.ts'
import { EMPTY_SEARCH, toSearchPath, type Search } from '../feed/search.ts'
import { toPlural } from '../plural.ts'
import { request, type Result } from '../request.ts'
import { isAllowed } from '../session.ts'
import { QuietButton } from '../components/quiet-button.tsx'

/** The server stops counting new events here. */
const MAX_NEW = 100

interface ViewListOptions {
  account: Account
  project: string
  search: Search
}

/** The views of a project in the sidebar, and the form that saves the current search as one. */
export function ViewList({ account, project, search }: ViewListOptions) {
  const place = { projectId: project }
  const kept = { everyMs: MINUTE_MS, isKept: true }
  const views = useRoute('GET /api/projects/:projectId/views', place, kept)
  const [isManaging, setManaging] = useState(false)
  const items = views.data?.items ?? []
  const mayShare = isAllowed(account, project, 'member')
  const text = search.text.trim()
  const isSaved = items.some(({ q }) => q === text)

  /** Sends a change, shows its failure, and reads the views again. Returns whether it succeeded. */
  async function change(send: Promise<Result<unknown>>) {
    const result = await send
    showResult(result)
    await views.refetch()
    return result.ok
  }

  /** Marks all present events of a view as seen. */
  async function see({ id: viewId }: View) {
    const now = await request('GET /api/projects/:projectId', place)
    if (!now.ok) return
    const mark = { ...place, viewId, seq: now.data.head }
    await change(request('PUT /api/projects/:projectId/views/:viewId/read', mark))
  }

  if (items.length === 0 && text === '') return null
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
              {view.newEvents !== null && view.newEvents > 0 && <NewEvents view={view} />}
            </a>
            <button
              type="button"
              class="bell"
              aria-pressed={view.hasBell}
              aria-label={`Notify me of new events in ${view.name}`}
              title={view.hasBell ? 'You are notified of new events' : 'You are not notified'}
              onClick={() =>
                void change(
                  request('PUT /api/projects/:projectId/views/:viewId/bell', {
                    ...place,
                    viewId: view.id,
                    isOn: !view.hasBell,
                  }),
                )
              }
            >
              <Icon name={view.hasBell ? 'notifications' : 'muted'} />
            </button>
            {isManaging && (!view.isShared || mayShare) && (
              <EditView
                key={view.id}
                view={view}
                mayShare={mayShare}
                onEdit={edit =>
                  change(
                    request('PATCH /api/projects/:projectId/views/:viewId', {
                      ...place,
                      viewId: view.id,
                      ...edit,
                    }),
                  )
                }
                onDelete={() =>
                  change(
                    request('DELETE /api/projects/:projectId/views/:viewId', {
                      ...place,
                      viewId: view.id,
                    }),
                  )
                }
              />
            )}
          </li>
        ))}
      </ul>
      {text !== '' && !isSaved && (
        <SaveView
          key={text}
          mayShare={mayShare}
          onSave={(name, isShared) =>
            change(
              request('POST /api/projects/:projectId/views', { ...place, name, q: text, isShared }),
            )
          }
        />
      )}
      {items.length > 0 && (
        <QuietButton aria-expanded={isManaging} onClick={() => setManaging(!isManaging)}>
          Manage views
        </QuietButton>
      )}
    </section>
  )
}

function NewEvents({ view: { newEvents, isPartial } }: { view: View }) {
  const count = newEvents ?? 0
  const isMore = isPartial || count >= MAX_NEW
  return (
    <span class="unread" aria-label={toPlural(count, 'new event')}>
      {count}
      {isMore && '+'}
    </span>
  )
}

interface SaveViewOptions {
  mayShare: boolean
  onSave(name: string, isShared: boolean): Promise<unknown>
}

function SaveView({ mayShare, onSave }: SaveViewOptions) {
  const [isOpen, setOpen] = useState(false)
  if (!isOpen) {
    return <QuietButton onClick={() => setOpen(true)}>Save this search</QuietButton>
  }
  return <NameForm action="Save" name="" isShared={false} mayShare={mayShare} onSubmit={onSave} />
}

interface EditViewOptions {
  view: View
  mayShare: boolean
  /** Returns whether the change was accepted. */
  onEdit(edit: ViewEdit): Promise<boolean>
  onDelete(): Promise<unknown>
}

function EditView({ view, mayShare, onEdit, onDelete }: EditViewOptions) {
  // As it was when the form was opened, or saved last.
  const [before, setBefore] = useState(view)
  return (
    <div class="edit-view">
      <NameForm
        action="Save"
        name={before.name}
        isShared={before.isShared}
        mayShare={mayShare}
        onSubmit={async (name, isShared) => {
          const isSaved = await onEdit(pickChanges<ViewEdit>(before, { name, isShared }))
          if (isSaved) setBefore({ ...before, name, isShared })
        }}
      />
      <QuietButton onClick={() => void onDelete()}>Delete {view.name}</QuietButton>
    </div>
  )
}

interface NameFormOptions {
  action: string
  name: string
  isShared: boolean
  mayShare: boolean
  onSubmit(name: string, isShared: boolean): Promise<unknown>
}

function NameForm({ action, name, isShared, mayShare, onSubmit }: NameFormOptions) {
  return (
    <form
      class="name-view"
      onSubmit={event => {
        event.preventDefault()
        const data = new FormData(event.currentTarget)
        void onSubmit(String(data.get('name') ?? ''), data.get('isShared') !== null)
      }}
    >
      <label>
        Name
        <input class="input" name="name" required maxLength={60} defaultValue={name} />
      </label>
      {mayShare && (
        <label class="check">
          <input type="checkbox" name="isShared" defaultChecked={isShared} />
          Share with all members
        </label>
      )}
      <button class="button">{action}</button>
    </form>
  )
}
