import { signal } from '@preact/signals'
import { SecretOnce } from '../components/secret-once.tsx'

/** The secret that was just created, until the page of its webhook is closed. */
export const newSecret = signal<{ webhook: string; secret: string }>()

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
