import { MIGRATIONS } from '../db/migrations.ts'
import { command } from './command.ts'
import { migrateDatabase } from './environment.ts'

export const migrate = command({
  name: 'migrate',
  description: "Bring the database to this program's schema. `serve` does the same at its start.",
  examples: ['tidings migrate', 'DATABASE_URL=postgres://… tidings migrate --json'],
  args: {},
  async run() {
    const applied = await migrateDatabase()
    const migrations = MIGRATIONS.map(({ name }) => ({ name, isNew: applied.includes(name) }))
    return {
      json: migrations,
      text: migrations.map(({ name, isNew }) => `${isNew ? 'new' : 'ok '}  ${name}`).join('\n'),
    }
  },
})
