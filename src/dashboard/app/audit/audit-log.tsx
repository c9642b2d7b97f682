import { toReaderTimes } from '../time-texts.ts'
import { Details, Section } from '../components/item.tsx'
import { useState } from 'preact/hooks'
import type { AuditEntry } from '../../../access/audit/entries.ts'
import { Select } from '../components/fields.tsx'
import { PagedList, usePages } from '../components/pages.tsx'
import { Moment } from '../components/timestamp.tsx'
import { toUrl } from '../request.ts'

const KINDS = [
  'organization',
  'project',
  'member',
  'invite',
  'key',
  'webhook',
  'delivery',
  'channel',
  'event',
  'user',
  'alias',
  'account',
  'audit',
  'access',
] as const
const SERVER_KINDS = ['session', 'password', 'account', 'reset', 'push', 'organization'] as const

interface AuditLogOptions {
  /** Undefined for the log of the server. */
  organization?: string
  /** The members to filter by. */
  members?: readonly { id: string; name: string }[]
}

/** The audit log, newest entries first, with filters. */
export function AuditLog({ organization, members = [] }: AuditLogOptions) {
  const [about, setAbout] = useState('')
  const [person, setPerson] = useState('')
  const filters = { person: person || undefined, about: about || undefined }
  const entries = usePages(
    organization === undefined
      ? 'GET /api/server/audit'
      : 'GET /api/organizations/:organizationId/audit',
    { organizationId: organization as string, limit: 20, ...filters },
  )
  const kinds = organization === undefined ? SERVER_KINDS : KINDS
  return (
    <Section id="audit" title="Audit log">
      <div class="filters">
        <Select
          name="about"
          label="Type"
          options={[
            { value: '', text: 'All types' },
            ...kinds.map(kind => ({ value: kind, text: toName(kind) })),
          ]}
          onChange={setAbout}
        />
        {organization !== undefined && (
          <Select
            name="person"
            label="Member"
            options={[
              { value: '', text: 'All members' },
              ...members.map(({ id, name }) => ({ value: id, text: name, isUserText: true })),
            ]}
            onChange={setPerson}
          />
        )}
      </div>
      {organization !== undefined && (
        <a
          class="quiet-button"
          href={toUrl('GET /api/organizations/:organizationId/audit/export', {
            organizationId: organization,
            ...filters,
          })}
          download
        >
          Export
        </a>
      )}
      <div class="audit-log">
        <PagedList pages={entries} empty={<p class="note">No entries in the last year</p>}>
          {entry => <Entry key={entry.id} entry={entry} />}
        </PagedList>
      </div>
    </Section>
  )
}

const ACTORS: Readonly<Record<string, string>> = {
  account: 'A deleted account',
  'API key': 'An API key of a deleted project',
  anonymous: 'Someone not signed in',
  'command line': 'The command line',
  server: 'The server',
}

function toActorName({ actor, person, key }: AuditEntry): string {
  if (person?.name) return person.name
  if (key?.name) return `The API key ${key.name}`
  return ACTORS[actor] ?? actor
}

function toName(kind: string): string {
  return kind[0]!.toUpperCase() + kind.slice(1)
}

function Entry({ entry }: { entry: AuditEntry }) {
  const { at, person, token, actionText, target, targetName, project, detailsText } = entry
  const { address, browser } = entry
  const isOwn = target === (person?.id ?? '')
  return (
    <li>
      <div class="item-main" title={target ?? undefined}>
        <p>
          <bdi>{toActorName(entry)}</bdi>{' '}
          {token !== null && (
            <>
              with the token <bdi>{token.name}</bdi>{' '}
            </>
          )}
          {actionText}
          {!isOwn && targetName !== null && (
            <>
              {' '}
              <bdi>{targetName}</bdi>
            </>
          )}
          {project !== null && project.id !== target && (
            <>
              {' '}
              in <bdi>{project.name ?? 'a deleted project'}</bdi>
            </>
          )}
        </p>
        <Details>
          {detailsText && <bdi>{toReaderTimes(detailsText)}</bdi>}
          <Moment at={at} />
          {address && <bdi>{address}</bdi>}
          {browser && <bdi>{browser}</bdi>}
        </Details>
      </div>
    </li>
  )
}
