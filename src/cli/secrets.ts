import { resetSecrets } from '../database/secrets/reset.ts'
import { rotateSecrets } from '../database/secrets/rotation.ts'
import { SUBSCRIPTION_LOSS } from '../delivery/push/address.ts'
import { QUESTION_LOSS } from '../log/events/question.ts'
import { HOOK_LOSS } from '../log/hooks/sealing.ts'
import { ERASURE_KEY_LOSS } from '../log/identities/erased-users.ts'
import { VAPID_LOSS } from '../delivery/push/vapid.ts'
import { PROVIDER_LOSS } from '../access/openid/stored-providers.ts'
import { TOTP_LOSS } from '../access/second-factor/authenticator-app.ts'
import { WEBHOOK_LOSS } from '../delivery/webhooks/sealing.ts'
import { SEALED_TABLES } from '../server/backup/rows.ts'
import { command, commandGroup } from './command.ts'
import { DATA_DIR, withDatabase } from './environment.ts'

/** In order of deletion: subscriptions come before their VAPID key, so that they are counted. */
const LOSSES = [
  PROVIDER_LOSS,
  WEBHOOK_LOSS,
  HOOK_LOSS,
  QUESTION_LOSS,
  SUBSCRIPTION_LOSS,
  VAPID_LOSS,
  TOTP_LOSS,
  ERASURE_KEY_LOSS,
]

const rotate = command({
  name: 'rotate',
  description:
    'Encrypt all secrets in the database again: with a new APP_SECRET if it is kept in DATA_DIR, otherwise with the configured one. Servers can keep running.',
  examples: [
    'tidings secrets rotate',
    'APP_SECRET=$NEW APP_SECRET_OLD=$OLD tidings secrets rotate',
  ],
  args: DATA_DIR,
  run: args =>
    withDatabase(args, async (sql, { source }) => {
      const { isNew, resealed } = await rotateSecrets(sql, source, SEALED_TABLES)
      const next = isNew
        ? 'DATA_DIR has a new APP_SECRET. Back it up.'
        : 'Remove APP_SECRET_OLD once every server runs with the new APP_SECRET.'
      return { json: { isNew, resealed }, text: `Encrypted ${resealed} secrets again. ${next}` }
    }),
})

const reset = command({
  name: 'reset',
  description:
    'Recover from a lost APP_SECRET: delete the secrets that it encrypted, and continue with the configured APP_SECRET, or with a new one in DATA_DIR. Without --yes, only list what would be lost. Stop every server first.',
  examples: ['tidings secrets reset', 'tidings secrets reset --yes'],
  args: {
    ...DATA_DIR,
    yes: {
      type: 'boolean',
      description: 'Delete the secrets; this cannot be undone',
      default: false,
    },
  },
  run: args =>
    withDatabase(args, async (sql, { source }) => {
      const { yes } = args
      const { lost, consequences } = await resetSecrets(sql, source, {
        losses: LOSSES,
        isConfirmed: yes,
      })
      const none = ['Nothing: there are no encrypted secrets yet']
      const lines = (consequences.length > 0 ? consequences : none).map(line => `- ${line}.`)
      const head = yes
        ? 'The database now uses the current APP_SECRET. Lost with the previous one:'
        : 'Nothing was changed. With --yes, the database uses the current APP_SECRET. This would be lost and cannot be undone:'
      const tail = `Events, users, channels and API keys are not affected.${yes ? ' Start the servers, and back up the APP_SECRET.' : ''}`
      return { json: { isDone: yes, lost }, text: [head, ...lines, tail].join('\n') }
    }),
})

export const secrets = commandGroup({
  name: 'secrets',
  description: 'Change the key that encrypts the secrets in the database.',
  examples: ['tidings secrets rotate', 'tidings secrets reset'],
  commands: { rotate, reset },
})
