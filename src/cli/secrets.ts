import { defineCommand } from 'citty'
import { resetSecrets } from '../secrets/reset.ts'
import { rotateSecrets } from '../secrets/rotation.ts'
import { SUBSCRIPTION_LOSS } from '../push/address.ts'
import { VAPID_LOSS } from '../push/vapid.ts'
import { WEBHOOK_LOSS } from '../webhooks/sealing.ts'
import { command, withExamples } from './command.ts'
import { withDatabase } from './environment.ts'
import { SEALED_SUBSCRIPTIONS } from '../push/address.ts'
import { SEALED_VAPID_KEYS } from '../push/vapid.ts'
import { SEALED_WEBHOOKS } from '../webhooks/sealing.ts'

/** Everything that is sealed at rest. */
export const SEALED_TABLES = [SEALED_SUBSCRIPTIONS, SEALED_VAPID_KEYS, SEALED_WEBHOOKS]
/** Subscriptions before the key that they were for: so they are counted. */
const LOSSES = [WEBHOOK_LOSS, SUBSCRIPTION_LOSS, VAPID_LOSS]

const rotate = command({
  name: 'rotate',
  description:
    'Seal all secrets in the database anew: with a new APP_SECRET where it is kept in DATA_DIR, else with the one that is set. Servers may run meanwhile.',
  examples: [
    'tidings secrets rotate',
    'APP_SECRET=$NEW APP_SECRET_OLD=$OLD tidings secrets rotate',
  ],
  args: {},
  run: () =>
    withDatabase(async (sql, source) => {
      const { isNew, resealed } = await rotateSecrets(sql, source, SEALED_TABLES)
      const kept = isNew
        ? 'There is a new APP_SECRET in DATA_DIR: keep it with your backups.'
        : 'APP_SECRET_OLD is needed no longer, once every server runs with the new one.'
      return { json: { isNew, resealed }, text: `Sealed ${resealed} anew. ${kept}` }
    }),
})

const reset = command({
  name: 'reset',
  description:
    'The way out when the APP_SECRET is lost for good: drops what it has sealed, and goes on with the one that is set, or a new one in DATA_DIR. Says what is lost, and does nothing, without --yes. Stop every server first.',
  examples: ['tidings secrets reset', 'tidings secrets reset --yes'],
  args: {
    yes: { type: 'boolean', description: 'Do it: there is no way back', default: false },
  },
  run: ({ yes }) =>
    withDatabase(async (sql, source) => {
      const { lost, consequences } = await resetSecrets(sql, source, {
        losses: LOSSES,
        isConfirmed: yes,
      })
      const none = ['Nothing was sealed yet: nothing is lost']
      const lines = (consequences.length > 0 ? consequences : none).map(line => `- ${line}.`)
      const head = yes
        ? 'The APP_SECRET of now is that of the database. What was sealed with the former one is dropped:'
        : 'Nothing was changed. With --yes the APP_SECRET of now becomes that of the database, and there is no way back:'
      const tail = `Events, people, channels and API keys are not concerned.${yes ? ' Start the servers, and keep the APP_SECRET with your backups.' : ''}`
      return { json: { isDone: yes, lost }, text: [head, ...lines, tail].join('\n') }
    }),
})

export const secrets = withExamples(
  defineCommand({
    meta: { name: 'secrets', description: 'Change the key of what is sealed in the database.' },
    subCommands: { rotate, reset },
  }),
  ['tidings secrets rotate', 'tidings secrets reset'],
)
