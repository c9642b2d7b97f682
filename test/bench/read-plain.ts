import { createRandom } from '../../src/base/random.ts'
import { createPool } from '../../src/database/pool.ts'
import { connect } from '../../src/database/sql.ts'
import { toListCursor } from '../../src/log/events/seq-ranges.ts'
import { listEventsJson } from '../../src/log/events/read.ts'
import { noFilters } from '../../src/log/events/search-filters.ts'
import { closeCluster } from '../support/servers/postgres.ts'
import { BIG_PROJECT, makeBenchDatabase, EVENTS } from './read-data.ts'
import { interleave, SHARE, type Line } from './table.ts'

const RUNS = Math.ceil(300 * SHARE)
/** Runs before measuring, which prepare statements and fill buffers. */
const WARMING = 20
const BIG_EVENTS = EVENTS / 2

/** Returns the JSON of the page before an event, or of the newest page. */
type Read = (before: number | undefined) => Promise<string>

const PAGES = [
  { what: 'newest page', isDeep: false },
  { what: 'page at a random place', isDeep: true },
]

/**
 * Compares pages of 50 as JSON with one plain statement for the same page, each over one
 * connection.
 */
export async function compareRead(): Promise<Line[]> {
  const databaseUrl = await makeBenchDatabase()
  const pool = createPool(databaseUrl, { name: 'api', max: 1 })
  // On a small table Postgres otherwise chooses a generic plan that sorts the whole log.
  const plain = connect(databaseUrl, { name: 'bench', max: 1, settings: { enable_sort: 'off' } })
  try {
    const lines: Line[] = []
    for (const { what, isDeep } of PAGES) {
      const readOurs: Read = before => {
        const cursor =
          before === undefined
            ? {}
            : { cursor: toListCursor({ direction: 'older', seq: BigInt(before) }) }
        return pool.run(sql => listEventsJson(sql, BIG_PROJECT, noFilters(), cursor))
      }
      const readPlain: Read = async before => {
        const items = await plain`
          select
            e.id, e.seq, c.public_id, c.name, e.user_ref, e.occurred_at, e.created_at, e.title, e.description, e.icon,
            e.tags, e.metadata, e.source, e.notify
          from events e
            join channels c on c.project_id = e.project_id and c.id = e.channel_id
          where e.project_id = ${BIG_PROJECT} and e.seq < ${before ?? BIG_EVENTS + 1} and e.deleted_at is null
          order by e.seq desc
          limit 50
        `
        return JSON.stringify({ items })
      }
      const { ours, theirs } = await interleave({
        ours: () => measureReads(readOurs, isDeep),
        theirs: () => measureReads(readPlain, isDeep),
      })
      await checkSame(readOurs, readPlain, isDeep)
      lines.push({
        subject: 'reading',
        what: `ms p95, ${what} of ${EVENTS / 1e6} million events`,
        ours,
        reference: 'plain SELECT',
        theirs,
        better: 'less',
      })
    }
    return lines
  } finally {
    await pool.end()
    await plain.end()
    await closeCluster()
  }
}

async function measureReads(read: Read, isDeep: boolean): Promise<number> {
  const random = createRandom(42)
  const times: number[] = []
  for (let run = 0; run < WARMING + RUNS; run++) {
    const before = isDeep ? Math.ceil(random.next() * BIG_EVENTS) : undefined
    const startedAt = performance.now()
    await read(before)
    if (run >= WARMING) times.push(performance.now() - startedAt)
  }
  return times.sort((a, b) => a - b)[Math.floor(RUNS * 0.95)] ?? NaN
}

/** Checks that both read the same events; otherwise the figures do not count. */
async function checkSame(ours: Read, theirs: Read, isDeep: boolean): Promise<void> {
  const before = isDeep ? Math.ceil(BIG_EVENTS / 3) : undefined
  const [one, other] = (await Promise.all([ours(before), theirs(before)])).map(json =>
    (JSON.parse(json) as { items: { seq: number | string }[] }).items.map(({ seq }) => String(seq)),
  )
  if (one?.length !== 50 || one.join() !== other?.join())
    throw new Error(`The plain SELECT read other events: ${one} and ${other}`)
}
