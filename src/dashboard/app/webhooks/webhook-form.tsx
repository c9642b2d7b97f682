import { useState } from 'preact/hooks'
import { readChannels } from '../feed/use-channels.ts'
import { Checkbox, Select, Fieldset, TextArea } from '../components/fields.tsx'
import { Field, Form } from '../components/form.tsx'
import { Loaded, useQuery, useRoute } from '../components/query.tsx'
import { useAction } from '../components/use-action.ts'
import { QuietButton } from '../components/buttons.tsx'
import { CodeBlock } from '../components/copy-button.tsx'
import { request, type Result } from '../request.ts'
import type {
  NewWebhook,
  Webhook,
  WebhookPreview,
} from '../../../delivery/webhooks/webhook-schema.ts'
import { effect, signal } from '@preact/signals'
import { SecretOnce } from '../components/secret-once.tsx'
import { session } from '../session.ts'

interface WebhookFormOptions<Data> {
  project: string
  /** The webhook that is edited; undefined for a new one. */
  webhook?: Webhook
  action: string
  /** `before` is the webhook as it was when the form was opened. */
  send(webhook: NewWebhook, before: Webhook | undefined): Promise<Result<Data>>
  onDone(data: Data): void
}

/** The form for a webhook: its receiver, its URL and its channels. */
export function WebhookForm<Data>(options: WebhookFormOptions<Data>) {
  const { project, action, send, onDone } = options
  const [webhook] = useState(options.webhook)
  const channels = useQuery(project, () => readChannels(project))
  const [preset, setPreset] = useState(webhook?.preset ?? 'standard')
  const chosen = webhook?.channels ?? null
  const [isFiltered, setFiltered] = useState(chosen !== null)
  const views = useRoute('GET /api/projects/:projectId/views', { projectId: project })
  const viewId = webhook?.viewId ?? ''
  const shared = (views.data?.items ?? []).filter(({ isShared }) => isShared)
  const headers = webhook?.headers.join('\n') ?? ''
  return (
    <Loaded query={channels}>
      {({ items: known }) => {
        // Selected channels stay in the list even if they are archived or beyond its end.
        const beyond = (chosen ?? []).filter(id => known.every(one => one.id !== id))
        const listed = [...known, ...beyond.map(id => ({ id, name: id }))]
        // In the order of the webhook, so that the same channels are no change.
        const ids = [...new Set([...(chosen ?? []), ...listed.map(({ id }) => id)])]
        const toFields = (value: (name: string) => string): NewWebhook => ({
          url: value('url'),
          name: value('name').trim() || null,
          preset,
          channels: isFiltered ? ids.filter(value) : null,
          viewId: value('viewId') || null,
          body: value('body').trim() || null,
          ...(value('headers') !== headers && { headers: parseHeaders(value('headers')) }),
        })
        return (
          <Form action={action} send={value => send(toFields(value), webhook)} onDone={onDone}>
            <Select
              name="preset"
              label="Receiver"
              value={preset}
              options={Object.entries(PRESETS).map(([value, { text }]) => ({ value, text }))}
              onChange={value => setPreset(value as typeof preset)}
            />
            <Field
              name="url"
              label="URL"
              type="url"
              hint={PRESETS[preset].hint}
              value={webhook?.url ?? undefined}
            />
            <Field
              name="name"
              label="Description"
              isOptional
              hint="Shown in lists. Leave empty to show the host."
              value={webhook?.name}
            />
            <Select
              name="which"
              label="Sends"
              value={isFiltered ? 'some' : 'all'}
              options={[
                { value: 'all', text: 'Events from all channels' },
                { value: 'some', text: 'Events from selected channels' },
              ]}
              onChange={value => setFiltered(value === 'some')}
            />
            {isFiltered && (
              <Fieldset legend="Channels" name="channels">
                {listed.map(({ id, name }) => (
                  <Checkbox key={id} name={id} isOn={chosen?.includes(id) ?? false}>
                    <bdi>{name}</bdi>
                  </Checkbox>
                ))}
              </Fieldset>
            )}
            <Select
              name="viewId"
              label="Only events of a view"
              value={viewId}
              options={[
                { value: '', text: 'Every event' },
                ...shared.map(({ id, name }) => ({ value: id, text: name, isUserText: true })),
              ]}
            />
            <TextArea
              name="headers"
              label="Custom headers"
              hint="One a line, such as X-Team: ops. A name alone keeps its stored value."
              value={headers}
            />
            <TextArea
              name="body"
              label="Custom body"
              hint='JSON with places, such as {"text": "{{title}}"}. Leave empty for the usual body.'
              value={webhook?.body ?? undefined}
            />
            <Preview project={project} toFields={toFields} />
          </Form>
        )
      }}
    </Loaded>
  )
}

/** Returns the headers in lines such as `X-Team: ops`, and null for a name alone. */
function parseHeaders(lines: string): Record<string, string | null> {
  const found = lines.matchAll(/^\s*([^:\n]*[^:\s])\s*:?(.*)$/gm)
  return Object.fromEntries([...found].map(([, name, value]) => [name, value?.trim() || null]))
}

/** A button that shows the bodies for the latest events. */
function Preview({
  project,
  toFields,
}: {
  project: string
  toFields(value: (name: string) => string): NewWebhook
}) {
  const { act, isBusy, failure } = useAction()
  const [preview, setPreview] = useState<WebhookPreview>()
  async function load(form: HTMLFormElement | null) {
    const values = new FormData(form ?? undefined)
    const fields = toFields(name => String(values.get(name) ?? ''))
    const result = await act(() =>
      request('POST /api/projects/:projectId/webhooks/preview', { projectId: project, ...fields }),
    )
    setPreview(result?.ok ? result.data : undefined)
  }
  return (
    <div role="status">
      <QuietButton aria-disabled={isBusy} onClick={event => load(event.currentTarget.form)}>
        Preview
      </QuietButton>
      {failure && (
        <p class="issue">
          {failure.details.map(({ message }) => message).join(' · ') || failure.message}
        </p>
      )}
      {preview?.items.length === 0 && <p class="hint">No recent event matches.</p>}
      {preview?.items.map(({ eventId, body }) => (
        <CodeBlock key={eventId} label={`Body for event …${eventId.slice(-6)}`} text={body} />
      ))}
    </div>
  )
}

/** The supported receivers, with a hint for their URLs. */
export const PRESETS: Readonly<Record<Webhook['preset'], { text: string; hint: string }>> = {
  standard: {
    text: 'Your own server',
    hint: 'Events are sent as JSON in the Standard Webhooks format.',
  },
  slack: { text: 'Slack', hint: 'https://hooks.slack.com/services/…' },
  discord: { text: 'Discord', hint: 'https://discord.com/api/webhooks/…' },
  telegram: {
    text: 'Telegram',
    hint: 'https://api.telegram.org/bot…/sendMessage?chat_id=…',
  },
  ntfy: { text: 'ntfy', hint: 'The URL of a topic, such as https://ntfy.sh/my-topic' },
}

/** The secret that was just created, until the reader has saved it or the session ends. */
export const newSecret = signal<{ webhook: string; secret: string }>()
effect(() => {
  if (session.value.kind === 'signed_out') newSecret.value = undefined
})

/** Shows the secret of a webhook if it was just created. */
export function NewSecret({ webhook }: { webhook: string }) {
  if (newSecret.value?.webhook !== webhook) return null
  return (
    <SecretOnce
      title="Webhook secret"
      label="Signing secret"
      secret={newSecret.value.secret}
      onDone={() => (newSecret.value = undefined)}
    >
      <p class="hint">
        Every request is signed with it. Verify the signature before you trust a request:{' '}
        <a href="/docs/webhooks#verify-a-signature">how to verify</a>
      </p>
    </SecretOnce>
  )
}
