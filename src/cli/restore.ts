import { restoreBackup } from '../backup/restore.ts'
import { command } from './command.ts'
import { withInstallation } from './environment.ts'
import { readPassphrase } from './passphrase.ts'
import { SEALED_TABLES } from './sealed-tables.ts'

export const restore = command({
  name: 'restore',
  description:
    'Put a backup into an empty installation: all of it, or nothing. Its passphrase opens it.',
  examples: [
    'DATA_DIR=/var/lib/tidings-new tidings restore tidings.backup',
    'BACKUP_PASSPHRASE_FILE=/run/secrets/backup DATABASE_URL=postgres://… tidings restore tidings.backup --json',
  ],
  args: {
    file: { type: 'positional', required: true, description: 'What `tidings backup` wrote' },
  },
  async run({ file }) {
    const passphrase = await readPassphrase({ isNew: false })
    const restored = await withInstallation(({ url, source }) =>
      restoreBackup(url, file, { source, sealedTables: SEALED_TABLES, passphrase }),
    )
    const { rows, version, createdAt } = restored
    return {
      json: restored,
      text: [
        `Restored ${rows['events'] ?? 0} events, as they were on ${createdAt} (Tidings ${version}).`,
        'Everybody signs in again, and open invites and links are over; API keys and passwords are those of that day.',
        'Deliveries that were pending then are made again, with the same webhook-id. Restart servers that ran meanwhile.',
      ].join('\n'),
    }
  },
})
