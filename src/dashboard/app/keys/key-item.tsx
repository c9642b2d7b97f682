import { Details } from '../components/details.tsx'
import { useRef, useState } from 'preact/hooks'
import type { ApiKey, KeyChange } from '../../../access/keys/schema.ts'
import { pickChanges, pickFormer } from '../changes.ts'
import { DisclosureButton } from '../components/action-button.tsx'
import { GracePeriod } from '../components/fields.tsx'
import { Field, Form } from '../components/form.tsx'
import { Moment, now } from '../components/timestamp.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { request } from '../request.ts'
import { LimitField, type NewKey } from './create-key-form.tsx'
import { toScopeSummary } from './scopes.ts'
import { QuietButton } from '../components/quiet-button.tsx'
import { Bars, CountsTable, type BarRange } from '../charts/bars.tsx'
import { toPlural } from '../plural.ts'
import { toClockTime, toRangeName } from '../time.ts'
import { summarize, toHours, type Hour } from './hours.ts'

interface KeyOptions {
  project: string
  apiKey: ApiKey
  onCreated(key: NewKey): void
  onChanged(): void
}

/** An API key with its usage and its actions. */
export function KeyItem({ project, apiKey, onCreated, onChanged }: KeyOptions) {
  const { id, name } = apiKey
  const [open, setOpen] = useState<'requests' | 'edit' | 'rotate'>()
  const place = { projectId: project, keyId: id }
  const unfold = { open, onOpen: setOpen }
  const sent = useRef<KeyChange>({})
  // As it was when the form was opened.
  const before = useRef(apiKey)
  if (open !== 'edit') before.current = apiKey
  const edit = (change: KeyChange) =>
    request('PATCH /api/projects/:projectId/keys/:keyId', { ...place, ...change })

  return (
    <li>
      <About {...apiKey} />
      <div class="item-actions" role="group" aria-label={`Actions for ${name}`}>
        <DisclosureButton name="requests" {...unfold}>
          Requests
        </DisclosureButton>
        {!isInactive(apiKey) && (
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
              title="Revoke"
              name={name}
              lead="Requests with this key are refused immediately. This cannot be undone."
              yes="Revoke key"
              send={() => request('DELETE /api/projects/:projectId/keys/:keyId', place)}
              onDone={() => {
                setOpen(undefined)
                showToast('Key revoked.')
                onChanged()
              }}
            />
          </>
        )}
      </div>
      {apiKey.isPrinted && !isInactive(apiKey) && (
        <div class="notice printed-key">
          <p>
            The first start of the server printed this key in its log. Anyone who can read the log
            can use the key.
          </p>
          <QuietButton onClick={() => setOpen('rotate')}>Rotate this key</QuietButton>
        </div>
      )}
      {open !== undefined && (
        <div class="item-expanded">
          {open === 'requests' && <RequestsChart counts={apiKey.requestsPerHour} />}
          {open === 'edit' && (
            <Form
              action="Save"
              send={value => {
                sent.current = pickChanges<KeyChange>(before.current, {
                  name: value('name'),
                  limit: Number(value('limit')),
                })
                return edit(sent.current)
              }}
              onDone={() => {
                const former = pickFormer<KeyChange>(before.current, sent.current)
                setOpen(undefined)
                showToast({
                  message: 'Saved.',
                  undo: () => edit(former),
                  onUndone: onChanged,
                })
                onChanged()
              }}
            >
              <Field name="name" label="Name" value={before.current.name} />
              <LimitField value={before.current.limit} />
            </Form>
          )}
          {open === 'rotate' && (
            <Form
              action="Create new key"
              send={value =>
                request('POST /api/projects/:projectId/keys/:keyId/rotate', {
                  ...place,
                  overlapHours: Number(value('overlapHours')),
                })
              }
              onDone={made => {
                setOpen(undefined)
                onCreated(made)
              }}
            >
              <GracePeriod
                name="overlapHours"
                label="Keep old key valid"
                hint="The new key has the same name, permissions and limit."
              />
            </Form>
          )}
        </div>
      )}
    </li>
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
        {lastUsedAt === null ? (
          'Never used'
        ) : (
          <>
            Last used <Moment at={lastUsedAt} />
          </>
        )}
        <>
          created <Moment at={createdAt} />{' '}
          {createdBy !== null && (
            <>
              by <bdi>{createdBy}</bdi>
            </>
          )}
        </>
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

const HOUR_MS = 3_600_000

/** The requests of a key per hour in the last 24 hours, as a chart and a table. */
function RequestsChart({ counts }: { counts: readonly number[] }) {
  const [hovered, setHovered] = useState<BarRange>()
  const hours = toHours(counts, Date.now())
  const { sum, busiest } = summarize(hours)
  const hour = hovered && hours[hovered[0]]
  const toName = ({ atMs }: Hour) => toRangeName(atMs, atMs + HOUR_MS)
  return (
    <>
      <p class="item-details">
        <strong>{toRequests(hour?.requests ?? sum)}</strong>{' '}
        {hour ? toName(hour) : 'in the last 24 hours'}
      </p>
      {sum > 0 && (
        <>
          <Bars
            parts={[{ counts, colour: '--accent' }]}
            label={describe(sum, busiest)}
            toLabel={bar => toClockTime(hours[bar]?.atMs ?? NaN)}
            labelSteps={[1, 3, 6, 12]}
            onHover={setHovered}
          />
          <details class="counts">
            <summary>Show as table</summary>
            <CountsTable
              label="Requests per hour"
              columns={[{ name: 'Requests', counts }]}
              toName={bar => toName(hours[bar]!)}
            />
          </details>
        </>
      )}
    </>
  )
}

function describe(sum: number, busiest: Hour | undefined): string {
  const requests = toRequests(sum)
  return busiest
    ? `${requests} in the last 24 hours, with a peak of ${busiest.requests.toLocaleString()} at ${toClockTime(busiest.atMs)}`
    : `${requests} in the last 24 hours`
}

function toRequests(count: number): string {
  return toPlural(count, 'request')
}
