import { resolve } from 'node:path'
import { writeBackup } from '../backup/backup.ts'
import { command, UsageError } from './command.ts'
import { DATA_DIR, withInstallation } from './environment.ts'
import { SEALED_TABLES } from './secrets.ts'
import { restoreBackup } from '../backup/restore.ts'
import { existsSync, readFileSync } from 'node:fs'
import { toErasedFile } from '../identities/erased-file.ts'
import type { RepeatedErasures } from '../identities/repeat-erasures.ts'
import { MIN_PASSPHRASE } from '../backup/passphrase.ts'

export const backup = command({
  name: 'backup',
  description:
    'Write all data to one file. The server can keep running. A passphrase encrypts the secrets in the file.',
  examples: [
    'tidings backup /backups/tidings.backup',
    'BACKUP_PASSPHRASE_FILE=/run/secrets/backup tidings backup "/backups/$(date +%F).backup" --json',
  ],
  args: {
    ...DATA_DIR,
    file: { type: 'positional', required: true, description: 'Path of the new file' },
  },
  async run(args) {
    const file = resolve(args.file)
    const passphrase = await readPassphrase({ isNew: true })
    const stopping = new AbortController()
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.once(signal, () =>
        stopping.abort(new Error(`Stopped by ${signal}. No backup was written.`)),
      )
    }
    const { bytes, rows } = await withInstallation(args, ({ url, source }) =>
      writeBackup(url, file, {
        source,
        sealedTables: SEALED_TABLES,
        passphrase,
        signal: stopping.signal,
      }),
    )
    const all = Object.values(rows).reduce((sum, count) => sum + count, 0)
    return {
      json: { file, bytes, rows },
      text: `Wrote ${file}: ${rows['events'] ?? 0} events, ${all} rows in total, ${toSize(bytes)}. Store its passphrase in another place.`,
    }
  },
})

export const restore = command({
  name: 'restore',
  description:
    'Restore a backup into an empty installation: everything or nothing. Requires the passphrase of the backup.',
  examples: [
    'tidings restore tidings.backup --data-dir /var/lib/tidings-new',
    'BACKUP_PASSPHRASE_FILE=/run/secrets/backup DATABASE_URL=postgres://… tidings restore tidings.backup --json',
  ],
  args: {
    ...DATA_DIR,
    file: { type: 'positional', required: true, description: 'A file that `tidings backup` wrote' },
    erased: {
      type: 'string',
      description:
        'The list of erased users: the file `erased-users` in the DATA_DIR of the installation that made the backup. Default: the one in DATA_DIR',
    },
  },
  async run(args) {
    const { file, erased: list } = args
    if (list !== undefined && !existsSync(list)) {
      throw new UsageError(`--erased must be the path of a file. ${list} does not exist.`)
    }
    const passphrase = await readPassphrase({ isNew: false })
    const { erasedFile, ...restored } = await withInstallation(
      args,
      async ({ url, source }) => {
        const erasedFile = list ?? toErasedFile(source.dataDir)
        const options = { source, sealedTables: SEALED_TABLES, passphrase, erasedFile }
        return { erasedFile, ...(await restoreBackup(url, file, options)) }
      },
      { mayCreate: true },
    )
    const { rows, version, createdAt, erased } = restored
    return {
      json: restored,
      text: [
        `Restored ${rows['events'] ?? 0} events from the backup of ${createdAt} (Tidings ${version}).`,
        describeErased(erasedFile, erased),
        'Everyone must sign in again. Open invites and links no longer work. API keys and passwords are those of the backup.',
        'Deliveries that were pending are sent again, with the same webhook-id. Restart servers that ran during the restore.',
      ].join('\n'),
    }
  },
})

function describeErased(file: string, { listed, erased, unknown }: RepeatedErasures): string {
  if (!existsSync(file)) {
    return `There is no list of erased users at ${file}. Users that were erased after the backup are back. Restore again with --erased, or erase them again.`
  }
  const problem =
    unknown > 0
      ? ` ${unknown} names in the list are of another installation, and could not be compared.`
      : ''
  return `Of ${listed} users that were erased after the backup, ${erased} were in it. They are erased again.${problem}`
}

const PASSPHRASE_VARIABLE = 'BACKUP_PASSPHRASE'
const LINE_END = /\r?\n$/
const [INTERRUPT, END, ERASE] = ['\u0003', '\u0004', '\u007f']

/**
 * Reads the passphrase from BACKUP_PASSPHRASE, or from the file in BACKUP_PASSPHRASE_FILE. Asks for
 * it at the terminal when neither is set.
 */
async function readPassphrase({ isNew }: { isNew: boolean }): Promise<string> {
  const passphrase =
    readConfiguredPassphrase() ?? (await askPassphrase('Passphrase of the backup: '))
  if ([...passphrase].length < MIN_PASSPHRASE) {
    throw new UsageError(`The passphrase must have at least ${MIN_PASSPHRASE} characters.`)
  }
  const isTyped = readConfiguredPassphrase() === undefined
  if (isNew && isTyped && (await askPassphrase('Repeat the passphrase: ')) !== passphrase) {
    throw new UsageError('The two passphrases differ.')
  }
  return passphrase
}

function readConfiguredPassphrase(): string | undefined {
  const { [PASSPHRASE_VARIABLE]: passphrase, [`${PASSPHRASE_VARIABLE}_FILE`]: file } = process.env
  if (passphrase && file)
    throw new UsageError(
      `${PASSPHRASE_VARIABLE} and ${PASSPHRASE_VARIABLE}_FILE are both set. Remove one of them.`,
    )
  if (!file) return passphrase || undefined
  try {
    return readFileSync(file, 'utf8').replace(LINE_END, '')
  } catch {
    throw new UsageError(
      `${PASSPHRASE_VARIABLE}_FILE must be the path of a readable file. It is ${file}.`,
    )
  }
}

/** Asks at the terminal, without an echo of the typed characters. */
async function askPassphrase(question: string): Promise<string> {
  const { stdin, stderr } = process
  if (!stdin.isTTY)
    throw new UsageError(
      `Set ${PASSPHRASE_VARIABLE} or ${PASSPHRASE_VARIABLE}_FILE, or run the command at a terminal.`,
    )
  stderr.write(question)
  stdin.setRawMode(true)
  stdin.setEncoding('utf8')
  stdin.resume()
  try {
    return await new Promise((resolve, reject) => {
      let typed: string[] = []
      const take = (text: string) => {
        for (const key of text) {
          if (key === INTERRUPT) return finish(() => reject(new Error('Interrupted.')))
          if (key === '\r' || key === '\n' || key === END)
            return finish(() => resolve(typed.join('')))
          if (key === ERASE) typed = typed.slice(0, -1)
          else typed.push(key)
        }
      }
      const finish = (settle: () => void) => {
        stdin.off('data', take)
        settle()
      }
      stdin.on('data', take)
    })
  } finally {
    stdin.setRawMode(false)
    stdin.pause()
    stderr.write('\n')
  }
}

function toSize(bytes: number): string {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} KB` : `${(bytes / 1e6).toFixed(1)} MB`
}
