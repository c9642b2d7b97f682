import { withDatabase } from './environment.ts'
import { listMigrations } from '../db/migrate.ts'
import { command } from './command.ts'

export const migrate = command({
  name: 'migrate',
  description: "Bring the database to this program's schema. `serve` does the same at its start.",
  examples: ['tidings migrate', 'DATABASE_URL=postgres://… tidings migrate --json'],
  args: {},
  run: () =>
    withDatabase(async sql => {
      const migrations = await listMigrations(sql)
      return {
        json: migrations.map(({ name, checksum, isApplied }) => ({ name, checksum, isApplied })),
        text: migrations.map(({ name }) => `ok  ${name}`).join('\n'),
      }
    }),
})
