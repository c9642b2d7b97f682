import { resolve } from 'node:path'
import { writeBackup, type BackupPlace } from '../server/backup/backup.ts'
import { toReason } from '../base/errors.ts'
import { command, UsageError } from './command.ts'
import { DATA_DIR, withInstallation, type Place } from './environment.ts'
import { askHidden } from './hidden-input.ts'
import { rotateCopies, type Rotation } from '../server/backup/copies.ts'
import { MIN_PASSPHRASE, toKeep } from '../base/config/values.ts'
import { readSettings } from './settings.ts'
import { abortOnStopSignal } from './stop-signal.ts'
import { restoreBackup } from '../server/backup/restore.ts'
import { describeWrongCounts, REMEDY_OF_COUNTS } from '../database/damage.ts'
import { existsSync, statSync } from 'node:fs'
import { toErasedFile } from '../log/identities/erased-file.ts'
import type { RepeatedErasures } from '../log/identities/repeat-erasures.ts'

export const backup = command({
  name: 'backup',
  description:
    'Write all data to one file. The server can keep running. A passphrase encrypts the secrets in the file.',
  examples: [
    'tidings backup /backups/tidings.backup',
    'BACKUP_PASSPHRASE_FILE=/run/secrets/backup tidings backup /backups --keep 7 --json',
  ],
  args: {
    ...DATA_DIR,
    file: {
      type: 'positional',
      required: true,
      description: 'Path of the new file, or a folder for a file with the time in its name',
    },
    force: { type: 'boolean', default: false, description: 'Replace an existing file' },
    keep: {
      type: 'string',
      description:
        'Delete all but this many of the backups that the command has named in the folder',
    },
  },
  async run(args) {
    const target = toPlace(args.file)
    const keep = args.keep === undefined ? undefined : toKeep(args.keep)
    if (args.keep !== undefined && keep === undefined) {
      throw new UsageError('--keep must be a whole number from 1 to 1000.')
    }
    if ('file' in target) {
      const { file } = target
      if (keep !== undefined) throw new UsageError(`--keep requires a folder. ${file} is not one.`)
      if (existsSync(file) && !args.force) {
        throw new Error(`${file} exists. Choose another name, or replace it with --force.`)
      }
    }
    const passphrase = await readPassphrase(args, { isNew: true })
    const { signal } = abortOnStopSignal(name => `Stopped by ${name}. No backup was written.`)
    const { file, bytes, rows, wrongCounts } = await withInstallation(
      args,
      ({ url, source }) =>
        writeBackup(url, target, {
          source,
          passphrase,
          isForced: args.force,
          signal,
        }),
      { handlesSignals: true },
    )
    const { deleted, future, foreign } =
      // An older backup can have events that a damaged table has lost.
      keep && wrongCounts.length === 0 ? rotate(file, keep) : NOT_ROTATED
    const differences = describeWrongCounts(wrongCounts)
    const all = Object.values(rows).reduce((sum, count) => sum + count, 0)
    return {
      json: { file, bytes, rows, wrongCounts: differences, deleted, future, foreign },
      text: [
        `Wrote ${file}: ${rows['events'] ?? 0} events, ${all} rows in total, ${toSize(bytes)}. Store its passphrase in another place.`,
        ...(rows['events']
          ? []
          : ['The installation has no events yet. Check that it is the right one.']),
        ...differences.map(
          difference => `${difference} ${REMEDY_OF_COUNTS} No older backup was deleted.`,
        ),
        ...deleted.map(old => `Deleted ${old}`),
        ...future.map(later => `Kept ${later}: its time is in the future. Check the clock.`),
        ...(foreign > 0 ? [`Kept ${foreign} backups of other installations.`] : []),
      ].join('\n'),
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
      throw new UsageError(
        `--erased must be the path of a file. ${list} does not exist. ` +
          'An installation that erased no user has no list: leave --erased out then.',
      )
    }
    const passphrase = await readPassphrase(args, { isNew: false })
    const { erasedFile, ...restored } = await withInstallation(
      args,
      async ({ url, source }) => {
        const erasedFile = list ?? toErasedFile(source.dataDir)
        const options = { source, passphrase, erasedFile }
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
    return `There is no list of erased users at ${file}. If you erased none after the backup, none is needed. Otherwise they are back: restore again with --erased, or erase them again.`
  }
  const problem =
    unknown > 0
      ? ` ${unknown} names in the list are of another installation, and could not be compared.`
      : ''
  return `Of ${listed} users that were erased after the backup, ${erased} were in it. They are gone, and the server removes them from their events after its start.${problem}`
}

const PASSPHRASE_VARIABLE = 'BACKUP_PASSPHRASE'

/** Returns the place of the new backup. A folder is not created. */
function toPlace(given: string): BackupPlace {
  const path = resolve(given)
  const isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory()
  return isFolder ? { folder: path, at: new Date() } : { file: path }
}

const NOT_ROTATED: Rotation = { deleted: [], future: [], foreign: 0 }

function rotate(file: string, keep: number): Rotation {
  try {
    return rotateCopies(file, keep)
  } catch (error) {
    const reason = toReason(error)
    throw new Error(`Wrote ${file}. Old backups could not be deleted: ${reason}`, { cause: error })
  }
}

/** Reads the setting BACKUP_PASSPHRASE. Asks for it at the terminal when it is not set. */
async function readPassphrase(place: Place, { isNew }: { isNew: boolean }): Promise<string> {
  const { config } = readSettings({ DATA_DIR: place['data-dir'] })
  if (config.backupPassphrase !== undefined) return config.backupPassphrase
  const passphrase = await askPassphrase('Passphrase of the backup: ')
  if ([...passphrase].length < MIN_PASSPHRASE) {
    throw new UsageError(`The passphrase must have at least ${MIN_PASSPHRASE} characters.`)
  }
  if (isNew && (await askPassphrase('Repeat the passphrase: ')) !== passphrase) {
    throw new UsageError('The two passphrases differ.')
  }
  return passphrase
}

/** Asks at the terminal, without an echo of the typed characters. */
async function askPassphrase(question: string): Promise<string> {
  if (!process.stdin.isTTY)
    throw new UsageError(
      `Set ${PASSPHRASE_VARIABLE} or ${PASSPHRASE_VARIABLE}_FILE, or run the command at a terminal.`,
    )
  return askHidden(question)
}

function toSize(bytes: number): string {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} KB` : `${(bytes / 1e6).toFixed(1)} MB`
}
