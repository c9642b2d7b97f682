import { effect, signal } from '@preact/signals'
import { SecretOnce } from '../components/secret-once.tsx'
import { session } from '../session.ts'

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
