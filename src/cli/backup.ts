import { resolve } from 'node:path'
import { writeBackup } from '../backup/backup.ts'
import { command } from './command.ts'
import { withInstallation } from './environment.ts'
import { readPassphrase } from './passphrase.ts'
import { SEALED_TABLES } from './sealed-tables.ts'

export const backup = command({
  name: 'backup',
  description:
    'Write everything into one file, while the server runs. A passphrase seals the secrets in it.',
  examples: [
    'tidings backup /backups/tidings.backup',
    'BACKUP_PASSPHRASE_FILE=/run/secrets/backup tidings backup "/backups/$(date +%F).backup" --json',
  ],
  args: { file: { type: 'positional', required: true, description: 'Where to' } },
  async run({ file: given }) {
    const file = resolve(given)
    const passphrase = await readPassphrase({ isNew: true })
    const giveUp = new AbortController()
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.once(signal, () =>
        giveUp.abort(new Error(`Stopped by ${signal}: there is no backup`)),
      )
    }
    const { bytes, rows } = await withInstallation(({ url, source }) =>
      writeBackup(url, file, {
        source,
        sealedTables: SEALED_TABLES,
        passphrase,
        signal: giveUp.signal,
      }),
    )
    const all = Object.values(rows).reduce((sum, count) => sum + count, 0)
    return {
      json: { file, bytes, rows },
      text: `${file}: ${rows['events'] ?? 0} events, ${all} rows in all, ${toSize(bytes)}. Keep it apart from its passphrase.`,
    }
  },
})

function toSize(bytes: number): string {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} KB` : `${(bytes / 1e6).toFixed(1)} MB`
}
