import { setNewest } from '../../base/functions.ts'
import type { Pool } from '../../database/pool.ts'

const MAX_PROJECTS = 10_000

/** The shard of Citus that has the log of a project, and its node. */
interface Place {
  node: number
  shard: number
}

/** Finds the shards that have the logs of projects, and remembers them. */
export function createPlaces(pool: Pool) {
  const places = new Map<string, Place>()
  return {
    async find(projectId: string): Promise<Place> {
      const known = places.get(projectId)
      if (known) return known
      const [place] = await pool.run(
        sql => sql<[Place]>`
          select p.groupid as node, p.shardid::int as shard
          from pg_dist_placement p
          where p.shardid = get_shard_id_for_distribution_column('event_logs', ${projectId}::uuid)
        `,
      )
      setNewest(places, projectId, place, MAX_PROJECTS)
      return place
    },
    clear: () => places.clear(),
  }
}
