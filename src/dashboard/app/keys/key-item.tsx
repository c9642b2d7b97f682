import { useState } from 'preact/hooks'
import { DisclosureButton } from '../components/action-button.tsx'
import { withPasswordPrompt } from '../components/password-prompt.tsx'
import { Select } from '../components/fields.tsx'
import { Field, Form } from '../components/form.tsx'
import { Timestamp, now } from '../components/timestamp.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { editKey, revokeKey, rotateKey, type Key, type NewKey } from './api.ts'
import { LimitField } from './create-key-form.tsx'
import { RequestsChart } from './requests-chart.tsx'
import { toScopeSummary } from './scopes.ts'

const OVERLAPS = [
  { value: '0', text: 'No longer' },
  { value: '1', text: 'For an hour' },
  { value: '24', text: 'For a day' },
  { value: '168', text: 'For a week' },
]

interface KeyOptions {
  project: string
  apiKey: Key
  onCreated(key: NewKey): void
  onChanged(): void
}

/** A key: what is known of it, how much it is used, and what can be done with it. */
export function KeyItem({ project, apiKey, onCreated, onChanged }: KeyOptions) {
  const { id, name, limit } = apiKey
  const [open, setOpen] = useState<'requests' | 'edit' | 'rotate'>()
  const unfold = { open, onOpen: setOpen }
  const edit = (name: string, limit: number) => editKey(project, id, { name, limit })

  return (
    <li>
      <About {...apiKey} />
      <div class="item-actions" role="group" aria-label={name}>
        <DisclosureButton name="requests" {...unfold}>
          Requests
        </DisclosureButton>
        {!isOver(apiKey) && (
          <>
            <DisclosureButton name="edit" {...unfold}>
              Edit
            </DisclosureButton>
            <DisclosureButton name="rotate" {...unfold}>
              Rotate
            </DisclosureButton>
            <ConfirmButton
              isQuiet
              action="Revoke"
              title={
                <>
                  Revoke <bdi>{name}</bdi>?
                </>
              }
              lead="Whoever uses it is refused from the next request on. It cannot be undone."
              yes="Revoke this key"
              send={() => revokeKey(project, id)}
              onDone={() => {
                setOpen(undefined)
                showToast({ message: 'The key is revoked.' })
                onChanged()
              }}
            />
          </>
        )}
      </div>
      {open !== undefined && (
        <div class="item-expanded">
          {open === 'requests' && <RequestsChart counts={apiKey.requestsPerHour} />}
          {open === 'edit' && (
            <Form
              action="Save"
              send={value => edit(value('name'), Number(value('limit')))}
              onDone={() => {
                setOpen(undefined)
                showToast({ message: 'Saved.', undo: () => edit(name, limit), onUndone: onChanged })
                onChanged()
              }}
            >
              <Field name="name" label="Name" autocomplete="off" value={name} />
              <LimitField value={limit} />
            </Form>
          )}
          {open === 'rotate' && (
            <Form
              action="Make a new key"
              send={value =>
                withPasswordPrompt(() => rotateKey(project, id, Number(value('overlapHours'))))
              }
              onDone={made => {
                setOpen(undefined)
                onCreated(made)
              }}
            >
              <Select
                name="overlapHours"
                label="The old key works on"
                hint="The new one is like it, with a secret of its own."
                options={OVERLAPS}
                value="24"
              />
            </Form>
          )}
        </div>
      )}
    </li>
  )
}

function About(key: Key) {
  const { name, prefix, lastFour, limit, scopes, createdAt, createdBy, lastUsedAt } = key
  return (
    <div class="item-main">
      <h2>
        <bdi>{name}</bdi> <End {...key} />
      </h2>
      <p class="item-details">
        <code>
          {prefix}…{lastFour}
        </code>{' '}
        · {toScopeSummary(scopes)} · {limit.toLocaleString()} requests a minute
      </p>
      <p class="item-details">
        {lastUsedAt === null ? (
          'Not used yet'
        ) : (
          <>
            Last used <Timestamp atMs={Date.parse(lastUsedAt)} hasDate />
          </>
        )}{' '}
        · made <Timestamp atMs={Date.parse(createdAt)} hasDate />
        {createdBy !== null && (
          <>
            {' '}
            by <bdi>{createdBy}</bdi>
          </>
        )}
      </p>
    </div>
  )
}

/** When a key ends, or how it has. */
function End(key: Key) {
  const at = key.revokedAt ?? key.expiresAt
  if (at === null) return null
  const word = key.revokedAt !== null ? 'Revoked' : isOver(key) ? 'Expired' : 'Expires'
  return (
    <span class={`badge ${isOver(key) ? 'badge-bad' : ''}`}>
      {word} <Timestamp atMs={Date.parse(at)} hasDate />
    </span>
  )
}

function isOver({ revokedAt, expiresAt }: Key): boolean {
  if (revokedAt !== null || expiresAt === null) return revokedAt !== null
  // The time of the page ticks slowly: a key that was just ended is over at once.
  return Date.parse(expiresAt) <= Math.max(now.value, Date.now())
}
