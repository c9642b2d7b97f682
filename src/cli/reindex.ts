import { listProjects } from '../access/organizations/projects.ts'
import { correctCounts } from '../database/damage.ts'
import { reindexProject } from '../log/events/search-index.ts'
import { reindexUsers } from '../log/identities/user-indexer.ts'
import { command, UsageError } from './command.ts'
import { DATA_DIR, withDatabase } from './environment.ts'

export const reindex = command({
  name: 'reindex',
  description:
    'Build the search index anew, and correct wrong counts of events. The server can keep running, and searches stay exact.',
  examples: ['tidings reindex', "tidings reindex --project 'My project' --json"],
  args: {
    ...DATA_DIR,
    project: { type: 'string', description: 'Name or id of the project. Default: all projects' },
  },
  run: args =>
    withDatabase(args, async sql => {
      const projects = (await listProjects(sql)).filter(
        ({ id, name }) =>
          args.project === undefined || id === args.project || name === args.project,
      )
      if (projects.length === 0) throw new UsageError('No project has this name or id.')
      let segments = 0
      const corrected: { project: string; counts: number }[] = []
      for (const { uuid, id, name } of projects) {
        const counts = await correctCounts(sql, uuid)
        if (counts > 0) corrected.push({ project: id, counts })
        await reindexUsers(sql, uuid)
        segments += await reindexProject(sql, uuid, done => {
          if (done % 100 === 0) process.stderr.write(`${name}: ${done} segments\n`)
        })
      }
      return {
        json: { projects: projects.length, segments, corrected },
        text: [
          ...corrected.map(
            ({ project, counts }) => `Corrected ${counts} counts of the project ${project}.`,
          ),
          `Indexed ${segments} segments of ${projects.length} projects anew. The server indexes users and later events.`,
        ].join('\n'),
      }
    }),
})
