import { useState } from 'preact/hooks'
import { Unfold } from '../parts/act.tsx'
import { confirmed } from '../parts/confirm.tsx'
import { Choice } from '../parts/fields.tsx'
import { Field, Form } from '../parts/form.tsx'
import { Moment, now } from '../parts/moment.tsx'
import { Sure } from '../parts/sure.tsx'
import { tell } from '../parts/undo.tsx'
import { editKey, revokeKey, rotateKey, type Key, type NewKey } from './calls.ts'
import { Limit } from './make.tsx'
import { Requests } from './requests.tsx'
import { toPowers } from './scopes.ts'

const OVERLAPS = [
  { value: '0', text: 'No longer' },
  { value: '1', text: 'For an hour' },
  { value: '24', text: 'For a day' },
  { value: '168', text: 'For a week' },
]

interface KeyOptions {
  project: string
  apiKey: Key
  onMade(key: NewKey): void
  onChanged(): void
}

/** A key: what is known of it, how much it is used, and what can be done with it. */
export function KeyItem({ project, apiKey, onMade, onChanged }: KeyOptions) {
  const { id, name, limit } = apiKey
  const [open, setOpen] = useState<'requests' | 'edit' | 'rotate'>()
  const unfold = { open, onOpen: setOpen }
  const edit = (name: string, limit: number) => editKey(project, id, { name, limit })

  return (
    <li>
      <About {...apiKey} />
      <div class="item-acts" role="group" aria-label={name}>
        <Unfold name="requests" {...unfold}>
          Requests
        </Unfold>
        {!isOver(apiKey) && (
          <>
            <Unfold name="edit" {...unfold}>
              Edit
            </Unfold>
            <Unfold name="rotate" {...unfold}>
              Rotate
            </Unfold>
            <Sure
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
                tell({ said: 'The key is revoked.' })
                onChanged()
              }}
            />
          </>
        )}
      </div>
      {open !== undefined && (
        <div class="item-more">
          {open === 'requests' && <Requests counts={apiKey.requestsPerHour} />}
          {open === 'edit' && (
            <Form
              action="Save"
              send={value => edit(value('name'), Number(value('limit')))}
              onDone={() => {
                setOpen(undefined)
                tell({ said: 'Saved.', undo: () => edit(name, limit), onUndone: onChanged })
                onChanged()
              }}
            >
              <Field name="name" label="Name" autocomplete="off" value={name} />
              <Limit value={limit} />
            </Form>
          )}
          {open === 'rotate' && (
            <Form
              action="Make a new key"
              send={value => confirmed(() => rotateKey(project, id, Number(value('overlapHours'))))}
              onDone={made => {
                setOpen(undefined)
                onMade(made)
              }}
            >
              <Choice
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
    <div class="item-what">
      <h2>
        <bdi>{name}</bdi> <End {...key} />
      </h2>
      <p class="item-about">
        <code>
          {prefix}…{lastFour}
        </code>{' '}
        · {toPowers(scopes)} · {limit.toLocaleString()} requests a minute
      </p>
      <p class="item-about">
        {lastUsedAt === null ? (
          'Not used yet'
        ) : (
          <>
            Last used <Moment atMs={Date.parse(lastUsedAt)} isFar />
          </>
        )}{' '}
        · made <Moment atMs={Date.parse(createdAt)} isFar />
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
      {word} <Moment atMs={Date.parse(at)} isFar />
    </span>
  )
}

function isOver({ revokedAt, expiresAt }: Key): boolean {
  if (revokedAt !== null || expiresAt === null) return revokedAt !== null
  // The time of the page ticks slowly: a key that was just ended is over at once.
  return Date.parse(expiresAt) <= Math.max(now.value, Date.now())
}
