import { useRef, useState } from 'preact/hooks'
import { ActionButton } from '../components/action-button.tsx'
import { QuietButton } from '../components/buttons.tsx'
import { ConfirmButton } from '../components/confirm-button.tsx'
import { CodeBlock } from '../components/copy-button.tsx'
import { Select } from '../components/fields.tsx'
import { Field } from '../components/form.tsx'
import { FormButton } from '../components/inline-form.tsx'
import { Details, Item, MoreMenu } from '../components/item.tsx'
import { ProjectLayout } from '../components/layout.tsx'
import { PagedList } from '../components/pages.tsx'
import { MINUTE_MS, useRoute } from '../components/query.tsx'
import { SecretOnce } from '../components/secret-once.tsx'
import { Moment } from '../components/timestamp.tsx'
import { showToast } from '../components/toast.tsx'
import { toPlural } from '../locale.ts'
import { toEventPath } from '../paths.ts'
import { request } from '../request.ts'
import type { Data } from '../routes.ts'
import { isAllowed } from '../session.ts'
import type { ProjectPageProps } from './props.ts'

const ROUTE = '/api/projects/:projectId/hooks'
const HOOK = `${ROUTE}/:hookId` as const
const PREVIEW_MS = 400

type Hook = Data<`GET ${typeof ROUTE}`>['items'][number]
type Made = Data<`POST ${typeof ROUTE}`>

interface Program {
  text: string
  /** How to enter its address there. */
  where: string
  /** The lines of its configuration. */
  toLines?(url: string): string
  /** The origin of its secret, if it can sign. */
  secret?: string
}

const PROGRAMS: Record<Hook['preset'], Program> = {
  alertmanager: {
    text: 'Prometheus Alertmanager',
    where: 'Add it to the receivers of alertmanager.yml.',
    toLines: url =>
      `receivers:\n  - name: tidings\n    webhook_configs:\n      - url: ${url}\n        send_resolved: true`,
  },
  grafana: {
    text: 'Grafana',
    where: 'Add a contact point with the integration “Webhook”, and paste it as URL.',
  },
  'uptime-kuma': {
    text: 'Uptime Kuma',
    where: 'Add a notification of the type “Webhook”, and paste it as Post URL.',
  },
  github: {
    text: 'GitHub',
    where: 'Paste it as Payload URL under Settings, Webhooks. Choose application/json.',
    secret: 'The same text as under Secret in GitHub.',
  },
  stripe: {
    text: 'Stripe',
    where: 'Paste it as Endpoint URL of a webhook. Then enter its signing secret here.',
    secret: 'The signing secret of the endpoint: whsec_ and more.',
  },
  generic: {
    text: 'Another program',
    where: 'Let the program send JSON, a form or text to it.',
    toLines: url => `curl ${url} -d 'It works'`,
    secret: 'A secret of Standard Webhooks: whsec_ and base64.',
  },
}
const TEMPLATE = {
  title: 'Title',
  description: 'Description',
  channel: 'Channel',
  level: 'Level',
  thread: 'Thread',
  state: 'State of the thread',
  url: 'Link',
}
const FIELDS = Object.keys(TEMPLATE) as (keyof typeof TEMPLATE)[]
type Template = NonNullable<Hook['template']>

/** The inbound hooks of a project: addresses to which other programs send. */
export default function HooksPage({ account, project }: ProjectPageProps) {
  const hooks = useRoute(`GET ${ROUTE}`, { projectId: project }, { everyMs: MINUTE_MS })
  const [made, setMade] = useState<Made>()
  const isAdmin = isAllowed(account, project, 'admin')
  const show = (hook: Made) => {
    setMade(hook)
    void hooks.refetch()
  }
  return (
    <ProjectLayout account={account} project={project} at="hooks" title="Inbound hooks">
      <div class="settings">
        <p class="page-lead">
          Other programs send to these addresses, and each request becomes events.{' '}
          <a href="/docs/inbound-hooks">Connect a program</a>
        </p>
        {isAdmin && (
          <div class="primary-action">
            <FormButton
              isPrimary
              action="New hook"
              submit="Create hook"
              send={value =>
                request(`POST ${ROUTE}`, {
                  projectId: project,
                  preset: value('preset') as Hook['preset'],
                  name: value('name'),
                  channel: value('channel'),
                  ...(value('secret') && { secret: value('secret') }),
                })
              }
              onDone={show}
            >
              <NewHookFields />
            </FormButton>
          </div>
        )}
        {made && <Address made={made} onDone={() => setMade(undefined)} />}
        <PagedList
          pages={{ ...hooks, items: hooks.data?.items ?? [] }}
          empty={
            <div class="empty-state">
              <h2>No inbound hooks yet</h2>
              <p>
                {isAdmin ? 'Create one' : 'An admin can create one'} for Alertmanager, Grafana,
                Uptime Kuma, GitHub, Stripe, or anything that sends JSON.
              </p>
            </div>
          }
        >
          {hook => (
            <HookItem
              key={hook.id}
              {...{ project, hook, isAdmin, show }}
              onChanged={() => void hooks.refetch()}
            />
          )}
        </PagedList>
      </div>
    </ProjectLayout>
  )
}

function NewHookFields() {
  const [preset, setPreset] = useState<Hook['preset']>('alertmanager')
  const options = Object.entries(PROGRAMS).map(([value, { text }]) => ({ value, text }))
  return (
    <>
      <Select
        name="preset"
        label="Program"
        options={options}
        hint={PROGRAMS[preset].where}
        onChange={value => setPreset(value as Hook['preset'])}
      />
      <Field name="name" label="Name" />
      <Field name="channel" label="Channel" hint="It gets the events." />
      <SecretField preset={preset} />
    </>
  )
}

function SecretField({ preset, isKept }: { preset: Hook['preset']; isKept?: boolean }) {
  const { secret } = PROGRAMS[preset]
  if (secret === undefined) return null
  const hint = `${secret} Without one, requests are not verified.${isKept ? ' Leave empty to keep it.' : ''}`
  return <Field name="secret" label="Secret (optional)" type="password" isOptional hint={hint} />
}

/** A new address, with where it belongs. */
function Address({ made, onDone }: { made: Made; onDone(): void }) {
  const { where, toLines } = PROGRAMS[made.preset]
  return (
    <SecretOnce
      title={
        <>
          Address of <bdi>{made.name}</bdi>
        </>
      }
      label="Address"
      secret={made.url}
      advice={`Copy it now: it is shown only once. ${where}`}
      onDone={onDone}
    >
      {toLines && <CodeBlock label="To paste" text={toLines(made.url)} />}
    </SecretOnce>
  )
}

interface HookOptions {
  project: string
  hook: Hook
  isAdmin: boolean
  /** Shows a new address. */
  show(made: Made): void
  onChanged(): void
}

function HookItem({ project, hook, isAdmin, show, onChanged }: HookOptions) {
  const { id, name, preset, isOn, isVerified, requests, refused, lastRequestAt } = hook
  const [isOpen, setOpen] = useState(false)
  const place = { projectId: project, hookId: id }
  return (
    <>
      <Item
        title={
          <h2>
            <bdi>{name}</bdi>
            {!isOn && <span class="badge">Off</span>}
          </h2>
        }
        details={[
          PROGRAMS[preset].text,
          <bdi>{hook.channel}</bdi>,
          PROGRAMS[preset].secret && (isVerified ? 'Verified' : 'Not verified'),
          toPlural(requests, 'request'),
          refused > 0 && `${refused.toLocaleString()} with a wrong signature`,
          lastRequestAt && <Moment word="last" at={lastRequestAt} />,
        ]}
      >
        <QuietButton
          aria-expanded={isOpen}
          aria-label={`Requests of ${name}`}
          onClick={() => setOpen(!isOpen)}
        >
          Requests
        </QuietButton>
        {isAdmin && (
          <>
            <FormButton
              action="Edit"
              label={`Edit ${name}`}
              submit="Save"
              send={value =>
                request(`PATCH ${HOOK}`, {
                  ...place,
                  name: value('name'),
                  channel: value('channel'),
                  ...(value('secret') && { secret: value('secret') }),
                  ...(preset === 'generic' && { template: toTemplate(value) }),
                })
              }
              onDone={() => {
                showToast('Saved.')
                onChanged()
              }}
            >
              <Field name="name" label="Name" value={name} />
              <Field
                name="channel"
                label="Channel"
                value={hook.channel}
                hint="Open alerts stay in the old channel."
              />
              <SecretField preset={preset} isKept={isVerified} />
              {preset === 'generic' && <TemplateFields place={place} hook={hook} />}
            </FormButton>
            <MoreMenu name={name}>
              <ActionButton
                action={isOn ? 'Turn off' : 'Turn on'}
                send={() => request(`PATCH ${HOOK}`, { ...place, isOn: !isOn })}
                onDone={onChanged}
              />
              {isVerified && (
                <ConfirmButton
                  isQuiet
                  action="Remove secret"
                  title="Remove the secret of"
                  name={name}
                  lead="Requests are not verified from now on."
                  yes="Remove secret"
                  send={() => request(`PATCH ${HOOK}`, { ...place, secret: null })}
                  onDone={onChanged}
                />
              )}
              <ConfirmButton
                isQuiet
                action="New address"
                title="Replace the address of"
                name={name}
                lead="The old address stops at once."
                yes="Replace address"
                send={() => request(`POST ${HOOK}/token`, place)}
                onDone={show}
              />
              <ConfirmButton
                action="Delete"
                title="Delete"
                name={name}
                lead="Its requests are refused from now on. Its events stay."
                yes="Delete hook"
                send={() => request(`DELETE ${HOOK}`, place)}
                onDone={onChanged}
              />
            </MoreMenu>
          </>
        )}
      </Item>
      {isOpen && (
        <li aria-label={`Requests of ${name}`}>
          <Requests place={place} />
        </li>
      )}
    </>
  )
}

interface Place {
  projectId: string
  hookId: string
}

/** The last requests, each with what became of it. */
function Requests({ place }: { place: Place }) {
  const requests = useRoute(`GET ${HOOK}/requests`, place, { everyMs: MINUTE_MS })
  return (
    <PagedList
      pages={{ ...requests, items: requests.data?.items ?? [] }}
      empty={<p class="note">No request in the last 30 days.</p>}
    >
      {({ id, at, status, outcome, headers, body, eventIds }) => (
        <li key={id}>
          <div class="item-main">
            <Details>
              <Moment at={at} />
              {String(status)}
              {outcome}
              {eventIds.slice(0, 3).map(event => (
                <a key={event} href={toEventPath(place.projectId, event)}>
                  Event
                </a>
              ))}
            </Details>
            <details>
              <summary>Headers and body</summary>
              <CodeBlock
                label="Headers"
                text={Object.entries(headers)
                  .map(pair => pair.join(': '))
                  .join('\n')}
              />
              <CodeBlock label="Body" text={body} />
            </details>
          </div>
        </li>
      )}
    </PagedList>
  )
}

/** Returns the fields that have a text; null without one. */
function toTemplate(value: (name: string) => string): Template | null {
  const filled = FIELDS.map(name => [name, value(`template.${name}`)]).filter(
    ([, text]) => text !== '',
  )
  return filled.length > 0 ? Object.fromEntries(filled) : null
}

/** The fields of a template, with what the last requests would become. */
function TemplateFields({ place, hook }: { place: Place; hook: Hook }) {
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)
  const [events, setEvents] = useState<readonly object[]>()
  function preview({ currentTarget }: { currentTarget: HTMLElement }) {
    clearTimeout(timer.current)
    const own = setTimeout(async () => {
      const form = currentTarget.closest('form')
      if (!form) return
      const values = new FormData(form)
      const template = toTemplate(name => String(values.get(name) ?? ''))
      const result = await request(`POST ${HOOK}/preview`, { ...place, template })
      // A later template has its own answer.
      if (result.ok && own === timer.current) setEvents(result.data.events)
    }, PREVIEW_MS)
    timer.current = own
  }
  return (
    <div onInput={preview} onFocusIn={events ? undefined : preview}>
      <p class="hint">
        Texts can have places such as {'{{order.id}}'}. Without any, the usual names are used. The
        preview knows the first 64 KiB of a body.
      </p>
      {FIELDS.map(name => (
        <Field
          key={name}
          name={`template.${name}`}
          label={TEMPLATE[name]}
          isOptional
          value={hook.template?.[name] ?? ''}
        />
      ))}
      {events?.length === 0 && <p class="hint">A preview appears after the first request.</p>}
      {events && events.length > 0 && (
        <CodeBlock
          label="The last requests would become"
          text={events.map(event => JSON.stringify(event, null, 2)).join('\n')}
        />
      )}
    </div>
  )
}
