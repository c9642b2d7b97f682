/** Small enough that a batch of large jobs takes Postgres some 10 ms. */
const MAX_BATCH_BYTES = 256 * 1024
/** The bytes that a group may have in a batch with other groups. A larger job is in none. */
const MAX_SHARED_BYTES = 64 * 1024

export interface BatchQueueOptions {
  /** The largest number of jobs of a batch. */
  maxJobs: number
}

export interface QueuedJob {
  group: string
  bytes: number
}

/** Jobs that wait for a batch. */
export interface BatchQueue<Job extends QueuedJob> {
  add(job: Job): void
  /** Removes the jobs of the next batch. Returns at least one if any wait. */
  take(): Job[]
  readonly waiting: number
}

/** The waiting jobs of a group. */
interface GroupQueue<Job> {
  small: Job[]
  /** Jobs of more than MAX_SHARED_BYTES. */
  large: Job[]
}

/**
 * Creates a queue whose groups take turns. One with many or large jobs delays no other. The queue
 * itself has no bound: the memory of requests has one, and so have deliveries in flight.
 */
export function createBatchQueue<Job extends QueuedJob>({
  maxJobs,
}: BatchQueueOptions): BatchQueue<Job> {
  const groups = new Map<string, GroupQueue<Job>>()
  let waiting = 0
  // True if the last batch was one of large jobs.
  let wasLarge = false

  /**
   * Takes the next batch. Batches of small jobs and of large ones alternate, so a small job waits
   * for one batch of large jobs at most.
   */
  function take(): Job[] {
    const all = [...groups.values()]
    const isLarge = wasLarge
      ? !all.some(({ small }) => small.length > 0)
      : all.some(({ large }) => large.length > 0)
    wasLarge = isLarge
    const batch = isLarge ? takeLarge(all) : takeSmall(all)
    for (const [group, taken] of Map.groupBy(batch, one => one.group)) remove(group, taken)
    waiting -= batch.length
    return batch
  }

  /** Returns large jobs of the first group that has some, up to the limits of a batch. */
  function takeLarge(all: GroupQueue<Job>[]): Job[] {
    const { large = [] } = all.find(one => one.large.length > 0) ?? {}
    let bytes = 0
    const end = large.findIndex((one, nth) => {
      bytes += one.bytes
      return nth > 0 && (nth === maxJobs || bytes > MAX_BATCH_BYTES)
    })
    return end < 0 ? large : large.slice(0, end)
  }

  /** Returns one small job of each group in turn, up to the limits of a batch. */
  function takeSmall(all: GroupQueue<Job>[]): Job[] {
    const batch: Job[] = []
    let open = all.map(({ small }) => ({ small, bytes: 0 })).filter(({ small }) => small.length > 0)
    const maxBytes = open.length > 1 ? MAX_SHARED_BYTES : MAX_BATCH_BYTES
    let bytes = 0
    for (let nth = 0; open.length > 0; nth++) {
      open = open.filter(group => {
        const next = group.small[nth]
        if (!next || batch.length === maxJobs) return false
        const isFull = group.bytes + next.bytes > maxBytes || bytes + next.bytes > MAX_BATCH_BYTES
        if (isFull && batch.length > 0) return false
        batch.push(next)
        group.bytes += next.bytes
        bytes += next.bytes
        return true
      })
    }
    return batch
  }

  /** Removes jobs from the queue of their group, which goes behind the others. */
  function remove(group: string, taken: Job[]): void {
    const queue = groups.get(group)
    groups.delete(group)
    if (!queue) return
    const lane = toLane(taken[0] as Job)
    const left = { ...queue, [lane]: queue[lane].slice(taken.length) }
    if (left.small.length + left.large.length > 0) groups.set(group, left)
  }

  return {
    add(job) {
      const queue = groups.get(job.group) ?? { small: [], large: [] }
      queue[toLane(job)].push(job)
      groups.set(job.group, queue)
      waiting++
    },
    take,
    get waiting() {
      return waiting
    },
  }
}

function toLane({ bytes }: QueuedJob): 'small' | 'large' {
  return bytes > MAX_SHARED_BYTES ? 'large' : 'small'
}
