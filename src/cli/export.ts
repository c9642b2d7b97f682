import { setPriority } from 'node:os'
import { resolve } from 'node:path'
import { withLock } from '../database/locks.ts'
import { connect } from '../database/sql.ts'
import { ndjson } from '../log/export/ndjson.ts'
import { parquet } from '../log/export/parquet.ts'
import { runExport } from '../log/export/run.ts'
import { command, UsageError } from './command.ts'
import { DATA_DIR, withDatabase } from './environment.ts'
import { abortOnStopSignal } from './stop-signal.ts'

/** The nice value of the process, so that servers on the same machine come first. */
const PRIORITY = 10
const FORMATS = { ndjson, parquet }
const TIMEOUT_MS = 60_000

export const exportEvents = command({
  name: 'export',
  description:
    'Copy the events of past months to files, one for each project and month, from the last exported event on. The server can keep running.',
  examples: [
    'tidings export /backups/events',
    'tidings export /backups/events --format parquet --json',
  ],
  args: {
    ...DATA_DIR,
    folder: { type: 'positional', required: true, description: 'The folder of the files' },
    format: {
      type: 'string',
      default: 'ndjson',
      description: '`ndjson`: JSON lines, compressed with gzip. `parquet`: Apache Parquet',
    },
    before: {
      type: 'string',
      description: 'A day (UTC) before which events are exported. Default: the first of this month',
    },
  },
  async run(args) {
    const format = Object.entries(FORMATS).find(([name]) => name === args.format)?.[1]
    if (!format) throw new UsageError('--format must be ndjson or parquet.')
    const before = toBefore(args.before, new Date())
    const stopping = abortOnStopSignal(name => `Stopped by ${name}. The next export continues.`)
    return withDatabase(
      args,
      async (_, { url, config }) => {
        setPriority(PRIORITY)
        const direct = config.databaseDirectUrl ?? url
        const settings = { statement_timeout: TIMEOUT_MS }
        const onLost = () => stopping.abort(new Error('The connection to the database was lost.'))
        return withLock(direct, 'export', onLost, async isHeld => {
          if (!isHeld) throw new Error('Another export is in progress. Nothing was done.')
          const sql = connect(direct, { name: 'export', max: 2, settings })
          const folder = resolve(args.folder)
          const { signal } = stopping
          const result = await runExport({ sql, folder, format, before, signal }).finally(() =>
            sql.end({ timeout: 1 }),
          )
          const { files, problems } = result
          const events = files.reduce((sum, file) => sum + file.events, 0)
          return {
            json: result,
            text: [
              ...files.map(file => `${file.name}: ${file.events} events`),
              `Exported ${events} events to ${files.length} files in ${folder}.`,
              ...problems,
            ].join('\n'),
            hasFailed: problems.length > 0,
          }
        })
      },
      { handlesSignals: true },
    )
  },
})

/** Returns the start of a day in UTC, by default of the first one of the month. */
function toBefore(text: string | undefined, now: Date): Date {
  if (text === undefined) return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth()))
  const day = new Date(`${text}T00:00:00.000Z`)
  if (!/^\d{4}-\d{2}-\d{2}$/.test(text) || Number.isNaN(day.getTime())) {
    throw new UsageError('--before must be a day like 2026-05-01.')
  }
  if (day > now) throw new UsageError('--before must not be in the future.')
  return day
}
