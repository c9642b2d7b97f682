import { signal } from '@preact/signals'
import { SecretOnce } from '../components/secret-once.tsx'

/** A secret that was made just now, until the page of its webhook is left. */
export const newSecret = signal<{ webhook: string; secret: string }>()

/** The secret of a webhook, if it is a new one. */
export function NewSecret({ webhook }: { webhook: string }) {
  if (newSecret.value?.webhook !== webhook) return null
  return (
    <SecretOnce
      title="The secret of this webhook"
      label="Signing secret"
      secret={newSecret.value.secret}
      onDone={() => (newSecret.value = undefined)}
    >
      <p class="hint">
        Every request is signed with it. Check the signature before you believe a request:{' '}
        <a href="/docs/webhooks#verify-a-signature">how to verify</a>
      </p>
    </SecretOnce>
  )
}
