import { Details, LastUse } from '../components/item.tsx'
import { useRef, useState } from 'preact/hooks'
import type { ApiKey, KeyChange } from '../../../access/keys/schema.ts'
import { Field, Form } from '../components/form.tsx'
import { pickChanges, pickFormer } from '../changes.ts'
import { GracePeriod } from '../components/fields.tsx'
import { FormButton, InlineForm } from '../components/inline-form.tsx'
import { Moment, now } from '../components/timestamp.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { request } from '../request.ts'
import { LimitField, type NewKey } from './create-key-form.tsx'
import { toScopeSummary } from './scopes.ts'
import { QuietButton } from '../components/buttons.tsx'
import { RequestsChart } from './requests-chart.tsx'

interface KeyOptions {
  project: string
  apiKey: ApiKey
  onCreated(key: NewKey): void
  onChanged(): void
}

/** An API key with its usage and its actions. */
export function KeyItem({ project, apiKey, onCreated, onChanged }: KeyOptions) {
  const { id, name } = apiKey
  const [isOpen, setOpen] = useState(false)
  const place = { projectId: project, keyId: id }
  const isActive = !isInactive(apiKey)
  const isPrinted = isActive && apiKey.isPrinted
  const rotate = (
    <FormButton
      action={isPrinted ? 'Rotate this key' : 'Rotate'}
      submit="Create new key"
      send={value =>
        request('POST /api/projects/:projectId/keys/:keyId/rotate', {
          ...place,
          overlapHours: Number(value('overlapHours')),
        })
      }
      onDone={onCreated}
    >
      <GracePeriod
        name="overlapHours"
        label="Keep old key valid"
        hint="The new key has the same name, permissions and limit."
      />
    </FormButton>
  )

  return (
    <li>
      <About {...apiKey} />
      <div class="item-actions" role="group" aria-label={`Actions for ${name}`}>
        <QuietButton aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Requests
        </QuietButton>
        {isActive && (
          <>
            <InlineForm action="Edit">
              {close => (
                <EditForm place={place} apiKey={apiKey} onDone={close} {...{ onChanged }} />
              )}
            </InlineForm>
            {!isPrinted && rotate}
            <ConfirmButton
              isQuiet
              action="Revoke"
              title="Revoke"
              name={name}
              lead="Requests with this key are refused immediately. This cannot be undone."
              yes="Revoke key"
              send={() => request('DELETE /api/projects/:projectId/keys/:keyId', place)}
              onDone={() => {
                showToast('Key revoked.')
                onChanged()
              }}
            />
          </>
        )}
      </div>
      {isPrinted && (
        <div class="notice printed-key">
          <p>
            The first start of the server printed this key in its log. Anyone who can read the log
            can use the key.
          </p>
          {rotate}
        </div>
      )}
      {isOpen && <RequestsChart counts={apiKey.requestsPerHour} />}
    </li>
  )
}

interface EditFormOptions extends Pick<KeyOptions, 'apiKey' | 'onChanged'> {
  place: { projectId: string; keyId: string }
  onDone(): void
}

function EditForm({ place, apiKey, onDone, onChanged }: EditFormOptions) {
  // As it was when the form was opened.
  const [{ name, limit }] = useState(apiKey)
  const sent = useRef<KeyChange>({})
  const edit = (change: KeyChange) =>
    request('PATCH /api/projects/:projectId/keys/:keyId', { ...place, ...change })
  return (
    <Form
      action="Save"
      send={value => {
        sent.current = pickChanges<KeyChange>(
          { name, limit },
          { name: value('name'), limit: Number(value('limit')) },
        )
        return edit(sent.current)
      }}
      onDone={() => {
        const former = pickFormer<KeyChange>({ name, limit }, sent.current)
        onDone()
        showToast({ message: 'Saved.', undo: () => edit(former), onUndone: onChanged })
        onChanged()
      }}
    >
      <Field name="name" label="Name" value={name} />
      <LimitField value={limit} />
    </Form>
  )
}

function About(key: ApiKey) {
  const { name, prefix, lastFour, limit, scopes, createdAt, createdBy, lastUsedAt } = key
  return (
    <div class="item-main">
      <h2>
        <bdi>{name}</bdi> <End {...key} />
      </h2>
      <Details>
        <code>
          {prefix}…{lastFour}
        </code>
        {toScopeSummary(scopes)}
        {`${limit.toLocaleString()} requests per minute`}
      </Details>
      <Details>
        <>
          created <Moment at={createdAt} />{' '}
          {createdBy !== null && (
            <>
              by <bdi>{createdBy}</bdi>
            </>
          )}
        </>
        <LastUse at={lastUsedAt} />
      </Details>
    </div>
  )
}

/** The expiry or revocation of a key. */
function End(key: ApiKey) {
  const at = key.revokedAt ?? key.expiresAt
  if (at === null) return null
  const word = key.revokedAt !== null ? 'Revoked' : isInactive(key) ? 'Expired' : 'Expires'
  return (
    <span class={`badge ${isInactive(key) ? 'badge-bad' : ''}`}>
      {word} <Moment at={at} />
    </span>
  )
}

function isInactive({ revokedAt, expiresAt }: ApiKey): boolean {
  if (revokedAt !== null || expiresAt === null) return revokedAt !== null
  // `now` is updated every 20 seconds, which is too slow for a key that just expired.
  return Date.parse(expiresAt) <= Math.max(now.value, Date.now())
}
