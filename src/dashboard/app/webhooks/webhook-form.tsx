import { useState } from 'preact/hooks'
import { readChannels } from '../feed/use-channels.ts'
import { Checkbox, Select, Fieldset } from '../components/fields.tsx'
import { Field, Form } from '../components/form.tsx'
import { Loaded, useQuery } from '../components/query.tsx'
import type { Result } from '../request.ts'
import type { NewWebhook, Webhook } from '../../../delivery/webhooks/webhook-schema.ts'
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
  return (
    <Loaded query={channels}>
      {({ items: known }) => {
        // Selected channels stay in the list even if they are archived or beyond its end.
        const beyond = (chosen ?? []).filter(id => known.every(one => one.id !== id))
        const listed = [...known, ...beyond.map(id => ({ id, name: id }))]
        // In the order of the webhook, so that the same channels are no change.
        const ids = [...new Set([...(chosen ?? []), ...listed.map(({ id }) => id)])]
        return (
          <Form
            action={action}
            send={value =>
              send(
                {
                  url: value('url'),
                  name: value('name').trim() || null,
                  preset,
                  channels: isFiltered ? ids.filter(value) : null,
                },
                webhook,
              )
            }
            onDone={onDone}
          >
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
          </Form>
        )
      }}
    </Loaded>
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
