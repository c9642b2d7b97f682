import { setPriority } from 'node:os'
import { runRecorded } from '../log/archive/runs.ts'
import { listDueMonths } from '../log/archive/due.ts'
import { toId } from '../base/ids.ts'
import { command, UsageError } from './command.ts'
import { DATA_DIR, withDatabase } from './environment.ts'
import { listStopSignals } from './stop-signal.ts'

/** The nice value of the process, so that servers on the same machine come first. */
const PRIORITY = 10

export const archive = command({
  name: 'archive',
  description:
    'Move old events to Parquet files in ARCHIVE_DIR or ARCHIVE_S3_URL. The server can keep running. It does the same every day.',
  examples: [
    'ARCHIVE_DIR=/var/lib/tidings-archive tidings archive',
    'tidings archive --dry-run --json',
  ],
  args: {
    ...DATA_DIR,
    'dry-run': {
      type: 'boolean',
      default: false,
      description: 'Change nothing. Show the oldest month of each project that is due',
    },
    adopt: {
      type: 'boolean',
      default: false,
      description:
        'Take over the archive of the installation whose backup was restored here. That installation must not use it any more',
    },
  },
  run: args =>
    withDatabase(
      args,
      async (sql, { url, config, source }) => {
        const { archive: settings } = config
        if (!settings) {
          throw new UsageError('There is no archive. Set ARCHIVE_DIR or ARCHIVE_S3_URL.')
        }
        if (args['dry-run']) {
          const due = (await listDueMonths(sql, settings)).map(({ projectId, month, isWhole }) => ({
            project: toId('prj', projectId),
            month,
            isWhole,
          }))
          const lines = due.map(
            ({ project, month, isWhole }) =>
              `${project}: from ${month} on${isWhole ? '' : ', channels with a retention'}`,
          )
          return { json: due, text: lines.join('\n') || 'No event is due.' }
        }
        setPriority(PRIORITY)
        const stopping = new AbortController()
        for (const signal of listStopSignals()) {
          process.once(signal, () => stopping.abort())
        }
        const result = await runRecorded({
          url: config.databaseDirectUrl ?? url,
          source,
          settings,
          isAdopting: args.adopt,
          signal: stopping.signal,
        })
        if (!result) {
          return {
            json: null,
            text: 'Nothing was done: another run of the archive is in progress.',
          }
        }
        const { archived, deleted, erased, problems } = result
        return {
          json: result,
          text: [
            `Archived ${archived} events, and deleted the rows of ${deleted}.`,
            ...(erased > 0 ? [`Removed erased users from ${erased} archived events.`] : []),
            ...problems,
          ].join('\n'),
          hasFailed: problems.length > 0,
        }
      },
      { handlesSignals: true },
    ),
})
