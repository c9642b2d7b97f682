import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { AuditAction } from '../../../audit/actions.ts'
import type { AuditEntry } from '../../../audit/entries.ts'
import { toBrowserText } from '../account/browser-name.ts'
import { Select } from '../components/fields.tsx'
import { PagedList } from '../components/paged-list.tsx'
import { Timestamp } from '../components/timestamp.tsx'
import { usePages } from '../components/use-pages.ts'
import { readAudit, toExportPath } from './api.ts'
import type { MessageKey } from '../locales/catalogue.ts'
import { hasMessage, t, toRich } from '../locales/translate.tsx'

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
  people?: readonly { id: string; name: string }[]
}

/** The audit log, newest entries first, with filters. */
export function AuditLog({ organization, people = [] }: AuditLogOptions) {
  const [about, setAbout] = useState('')
  const [person, setPerson] = useState('')
  const entries = usePages(`${about} ${person}`, cursor =>
    readAudit(organization, { person, about, cursor }),
  )
  const kinds = organization === undefined ? SERVER_KINDS : KINDS
  return (
    <section class="section" aria-labelledby="audit">
      <h2 id="audit">{t('audit.title')}</h2>
      <div class="filters">
        <Select
          name="about"
          label={t('audit.type')}
          options={[
            { value: '', text: t('audit.allTypes') },
            ...kinds.map(kind => ({ value: kind, text: t(`audit.kind.${kind}`) })),
          ]}
          onChange={setAbout}
        />
        {people.length > 0 && (
          <Select
            name="person"
            label={t('audit.member')}
            options={[
              { value: '', text: t('audit.allMembers') },
              ...people.map(({ id, name }) => ({ value: id, text: name, isUserText: true })),
            ]}
            onChange={setPerson}
          />
        )}
      </div>
      {organization !== undefined && (
        <a class="quiet-button" href={toExportPath(organization, { person, about })} download>
          {t('audit.export')}
        </a>
      )}
      <div class="audit-log">
        <PagedList pages={entries} empty={<p class="note">{t('audit.none')}</p>}>
          {entry => <Entry key={entry.id} entry={entry} />}
        </PagedList>
      </div>
    </section>
  )
}

const ACTORS: Readonly<Record<string, MessageKey>> = {
  account: 'audit.deletedAccount',
  'API key': 'audit.deletedKey',
  anonymous: 'audit.anonymous',
  'command line': 'audit.commandLine',
  server: 'audit.server',
}

function toActorName({ actor, person, key }: AuditEntry): string {
  if (person?.name) return person.name
  if (key?.name) return t('audit.key', { name: key.name })
  const known = ACTORS[actor]
  return known ? t(known) : actor
}

/** The action with its target; in English as the server writes it. */
function toAction({ action, actionText }: AuditEntry, target: ComponentChildren) {
  // This line compiles only if every action has a message.
  const key: MessageKey = `actions.${action as AuditAction}`
  return hasMessage(key) ? (
    toRich({ key, values: { target } })
  ) : (
    <>
      <span lang="en">{actionText}</span> {target}
    </>
  )
}

function Entry({ entry }: { entry: AuditEntry }) {
  const { at, person, token, target, targetName, project, detailsText, address, browser } = entry
  const isOwn = target === (person?.id ?? '')
  return (
    <li>
      <div class="item-main" title={target ?? undefined}>
        <p>
          <bdi>{toActorName(entry)}</bdi>{' '}
          {token !== null && (
            <>{toRich({ key: 'audit.withToken', values: { name: <bdi>{token.name}</bdi> } })} </>
          )}
          {toAction(entry, !isOwn && targetName !== null && <bdi>{targetName}</bdi>)}
          {project !== null && project.id !== target && (
            <>
              {' '}
              {toRich({
                key: 'audit.inProject',
                values: { name: <bdi>{project.name ?? t('audit.deletedProject')}</bdi> },
              })}
            </>
          )}
        </p>
        <p class="item-details">
          {detailsText && (
            <>
              <bdi>{detailsText}</bdi>
              {' · '}
            </>
          )}
          <Timestamp atMs={Date.parse(at)} hasDate />
          {address !== null && (
            <>
              {' · '}
              <bdi>{address}</bdi>
            </>
          )}
          {browser !== null && (
            <>
              {' · '}
              <bdi>{toBrowserText(browser)}</bdi>
            </>
          )}
        </p>
      </div>
    </li>
  )
}
