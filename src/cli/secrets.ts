import { defineCommand } from 'citty'
import { rotateSecrets } from '../secrets/rotation.ts'
import { command, withExamples } from './command.ts'
import { withDatabase } from './environment.ts'
import { SEALED_TABLES } from './sealed-tables.ts'

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

export const secrets = withExamples(
  defineCommand({
    meta: { name: 'secrets', description: 'Change the key of what is sealed in the database.' },
    subCommands: { rotate },
  }),
  ['tidings secrets rotate'],
)
