import { listProjects } from '../access/organizations/projects.ts'
import { toId } from '../base/ids.ts'
import { correctCounts, describeWrongCounts, findWrongCounts } from '../database/damage.ts'
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
      const wrong = (await sql.begin(findWrongCounts)).filter(one =>
        projects.some(({ uuid }) => uuid === one.projectId),
      )
      await correctCounts(sql, wrong)
      let segments = 0
      for (const { uuid, name } of projects) {
        await reindexUsers(sql, uuid)
        segments += await reindexProject(sql, uuid, done => {
          if (done % 100 === 0) process.stderr.write(`${name}: ${done} segments\n`)
        })
      }
      return {
        json: {
          projects: projects.length,
          segments,
          corrected: wrong.map(one => toId('prj', one.projectId)),
        },
        text: [
          ...describeWrongCounts(wrong).map(
            difference => `${difference} The counts are corrected.`,
          ),
          `Indexed ${segments} segments of ${projects.length} projects anew. The server indexes users and later events.`,
        ].join('\n'),
      }
    }),
})
