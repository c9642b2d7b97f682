import { signal } from '@preact/signals'
import { SecretOnce } from '../components/secret-once.tsx'
import { t, toRich } from '../locales/translate.tsx'

/** The secret that was just created, until the page of its webhook is closed. */
export const newSecret = signal<{ webhook: string; secret: string }>()

/** Shows the secret of a webhook if it was just created. */
export function NewSecret({ webhook }: { webhook: string }) {
  if (newSecret.value?.webhook !== webhook) return null
  return (
    <SecretOnce
      title={t('webhooks.secret')}
      label={t('webhooks.signingSecret')}
      secret={newSecret.value.secret}
      onDone={() => (newSecret.value = undefined)}
    >
      <p class="hint">
        {toRich({
          key: 'webhooks.secretHint',
          elements: { docs: text => <a href="/docs/webhooks#verify-a-signature">{text}</a> },
        })}
      </p>
    </SecretOnce>
  )
}
