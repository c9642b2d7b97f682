import { useState } from 'preact/hooks'
import { listGracePeriods } from '../grace-periods.ts'
import { DisclosureButton } from '../components/action-button.tsx'
import { withVerification } from '../components/verification-prompt.tsx'
import { Select } from '../components/fields.tsx'
import { Field, Form } from '../components/form.tsx'
import { Timestamp, now } from '../components/timestamp.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { showToast } from '../components/toast.tsx'
import { editKey, revokeKey, rotateKey, type Key, type NewKey } from './api.ts'
import { LimitField } from './create-key-form.tsx'
import { RequestsChart } from './requests-chart.tsx'
import { toScopeSummary } from './scopes.ts'
import { t, toRich } from '../locales/translate.tsx'

interface KeyOptions {
  project: string
  apiKey: Key
  onCreated(key: NewKey): void
  onChanged(): void
}

/** An API key with its usage and its actions. */
export function KeyItem({ project, apiKey, onCreated, onChanged }: KeyOptions) {
  const { id, name, limit } = apiKey
  const [open, setOpen] = useState<'requests' | 'edit' | 'rotate'>()
  const unfold = { open, onOpen: setOpen }
  const edit = (name: string, limit: number) =>
    withVerification(() => editKey(project, id, { name, limit }))

  return (
    <li>
      <About {...apiKey} />
      <div class="item-actions" role="group" aria-label={t('keys.actionsOf', { name })}>
        <DisclosureButton name="requests" {...unfold}>
          {t('keys.requests')}
        </DisclosureButton>
        {!isInactive(apiKey) && (
          <>
            <DisclosureButton name="edit" {...unfold}>
              {t('words.edit')}
            </DisclosureButton>
            <DisclosureButton name="rotate" {...unfold}>
              {t('keys.rotate')}
            </DisclosureButton>
            <ConfirmButton
              isQuiet
              action={t('keys.revoke')}
              title={toRich({ key: 'keys.revokeName', values: { name: <bdi>{name}</bdi> } })}
              lead={t('keys.revokeLead')}
              yes={t('keys.revokeKey')}
              send={() => revokeKey(project, id)}
              onDone={() => {
                setOpen(undefined)
                showToast({ message: t('keys.revokedNow') })
                onChanged()
              }}
            />
          </>
        )}
      </div>
      {apiKey.isPrinted && !isInactive(apiKey) && (
        <div class="notice printed-key">
          <p>{t('keys.printed')}</p>
          <button type="button" class="quiet-button" onClick={() => setOpen('rotate')}>
            {t('keys.rotateThis')}
          </button>
        </div>
      )}
      {open !== undefined && (
        <div class="item-expanded">
          {open === 'requests' && <RequestsChart counts={apiKey.requestsPerHour} />}
          {open === 'edit' && (
            <Form
              action={t('words.save')}
              send={value => edit(value('name'), Number(value('limit')))}
              onDone={() => {
                setOpen(undefined)
                showToast({
                  message: t('words.saved'),
                  undo: () => edit(name, limit),
                  onUndone: onChanged,
                })
                onChanged()
              }}
            >
              <Field name="name" label={t('words.name')} autocomplete="off" value={name} />
              <LimitField value={limit} />
            </Form>
          )}
          {open === 'rotate' && (
            <Form
              action={t('keys.createNew')}
              send={value =>
                withVerification(() => rotateKey(project, id, Number(value('overlapHours'))))
              }
              onDone={made => {
                setOpen(undefined)
                onCreated(made)
              }}
            >
              <Select
                name="overlapHours"
                label={t('keys.keepOld')}
                hint={t('keys.keepOldHint')}
                options={listGracePeriods()}
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
        </code>
        {' · '}
        {t('keys.details', { scopes: toScopeSummary(scopes), limit })}
      </p>
      <p class="item-details">
        {toRich({
          key:
            createdBy === null
              ? lastUsedAt === null
                ? 'keys.neverUsed'
                : 'keys.used'
              : lastUsedAt === null
                ? 'keys.neverUsedBy'
                : 'keys.usedBy',
          values: {
            used: lastUsedAt !== null && <Timestamp atMs={Date.parse(lastUsedAt)} hasDate />,
            created: <Timestamp atMs={Date.parse(createdAt)} hasDate />,
            name: <bdi>{createdBy}</bdi>,
          },
        })}
      </p>
    </div>
  )
}

/** The expiry or revocation of a key. */
function End(key: Key) {
  const at = key.revokedAt ?? key.expiresAt
  if (at === null) return null
  const text =
    key.revokedAt !== null ? 'keys.revoked' : isInactive(key) ? 'keys.expired' : 'keys.expires'
  return (
    <span class={`badge ${isInactive(key) ? 'badge-bad' : ''}`}>
      {toRich({ key: text, values: { time: <Timestamp atMs={Date.parse(at)} hasDate /> } })}
    </span>
  )
}

function isInactive({ revokedAt, expiresAt }: Key): boolean {
  if (revokedAt !== null || expiresAt === null) return revokedAt !== null
  // `now` is updated every 20 seconds, which is too slow for a key that just expired.
  return Date.parse(expiresAt) <= Math.max(now.value, Date.now())
}
