import { setNewest } from '../../base/functions.ts'

/** A target with pending deliveries. */
export interface WaitingTarget {
  targetId: string
  /** The time until its first delivery is due; negative when overdue. */
  dueInMs: number
  /** When its first delivery is due, as Postgres writes it. */
  dueAt: string
  /**
   * The lower bound of later scans: no delivery that is due before this time can still appear.
   */
  floor: string
}

/** Requests up to `room` deliveries of a target that are due at `dueAt` or later. */
export interface ClaimRequest {
  targetId: string
  room: number
  dueAt: string
}

/**
 * The longest time that a postponed target is skipped. It can recover before its delivery is due.
 */
const MAX_PAUSE_MS = 30_000
const MAX_PAUSED = 10_000
/** How long a target that has asked to wait then gets one attempt at a time. */
const SINGLE_MS = 60_000
/** The time of deliveries that are due before all others. */
const EARLIEST = '-infinity'

export type FairQueue = ReturnType<typeof createFairQueue>

/**
 * Creates a fair queue: targets with due deliveries take turns, new ones first, and each has at
 * most `perTarget` attempts at a time. Callers pass times of `performance.now()`.
 */
export function createFairQueue(perTarget: number) {
  // In the order of their turns. A target moves to the end when it is served.
  let due = new Map<string, string>()
  const running = new Map<string, number>()
  const hanging = new Map<string, number>()
  const paused = new Map<string, number>()
  // When a target that has asked to wait gets the next attempt, and until when one at a time.
  const resting = new Map<string, number>()
  const single = new Map<string, number>()
  let nextResumeMs = Infinity

  function change(counts: Map<string, number>, targetId: string, by: 1 | -1): void {
    const count = (counts.get(targetId) ?? 0) + by
    if (count > 0) counts.set(targetId, count)
    else counts.delete(targetId)
  }

  function isPaused(targetId: string, nowMs: number): boolean {
    return Math.max(paused.get(targetId) ?? 0, resting.get(targetId) ?? 0) > nowMs
  }

  function findRoom(targetId: string, nowMs: number): number {
    if (hanging.has(targetId) || resting.has(targetId) || isPaused(targetId, nowMs)) return 0
    const most = (single.get(targetId) ?? 0) > nowMs ? 1 : perTarget
    return most - (running.get(targetId) ?? 0)
  }

  function forget(times: Map<string, number>, nowMs: number): void {
    for (const [targetId, untilMs] of times) if (untilMs <= nowMs) times.delete(targetId)
  }

  return {
    /** Replaces the due targets by those of a scan. Known targets keep their order. */
    update(found: readonly WaitingTarget[], nowMs: number): void {
      forget(paused, nowMs)
      forget(single, nowMs)
      const nowDue = new Map(
        found
          .filter(({ dueInMs, targetId }) => dueInMs <= 0 && !resting.has(targetId))
          .map(({ targetId, dueAt }) => [targetId, single.has(targetId) ? EARLIEST : dueAt]),
      )
      // A scan can miss deliveries that were returned to their place.
      for (const [targetId, dueAt] of due) if (dueAt === EARLIEST) nowDue.set(targetId, EARLIEST)
      const known = [...due.keys()].filter(targetId => nowDue.has(targetId))
      const before = new Set(known)
      const fresh = [...nowDue.keys()].filter(targetId => !before.has(targetId))
      due = new Map([...fresh, ...known].map(targetId => [targetId, nowDue.get(targetId) ?? '']))
    },
    /** Returns the next claim requests, for about `free` deliveries in all. */
    next(free: number, nowMs: number): ClaimRequest[] {
      const chosen: ClaimRequest[] = []
      for (const [targetId, dueAt] of due) {
        if (chosen.length >= free) break
        const room = findRoom(targetId, nowMs)
        if (room > 0) chosen.push({ targetId, room, dueAt })
      }
      const share = Math.ceil(free / Math.max(1, chosen.length)) + 1
      return chosen.map(request => ({ ...request, room: Math.min(request.room, share) }))
    },
    /**
     * Records how many deliveries of each target a claim returned. If the claim was not cut short
     * (`isAll`), a target with fewer than requested has no more due deliveries.
     */
    claimed(
      requests: readonly ClaimRequest[],
      { counts, isAll }: { counts: ReadonlyMap<string, number>; isAll: boolean },
    ): void {
      for (const { targetId, room } of requests) {
        const dueAt = due.get(targetId)
        if (dueAt === undefined) continue
        due.delete(targetId)
        if (!isAll || (counts.get(targetId) ?? 0) >= room) due.set(targetId, dueAt)
      }
    },
    start: (targetId: string) => change(running, targetId, 1),
    end: (targetId: string) => change(running, targetId, -1),
    /** Marks an attempt as hanging. The target gets no other attempt until `unhang`. */
    hang: (targetId: string) => change(hanging, targetId, 1),
    unhang: (targetId: string) => change(hanging, targetId, -1),
    /** Skips a target for `afterMs`, because its delivery was postponed. */
    pause(targetId: string, afterMs: number, nowMs: number): void {
      const untilMs = nowMs + Math.max(0, Math.min(MAX_PAUSE_MS, afterMs))
      setNewest(paused, targetId, untilMs, MAX_PAUSED)
    },
    /** Ends the pause of a target that was resumed. */
    unpause(targetId: string): void {
      paused.delete(targetId)
      if (resting.delete(targetId)) due.set(targetId, EARLIEST)
    },
    /** Skips a target that has asked to wait. Its deliveries are due before all others then. */
    rest(targetId: string, afterMs: number, nowMs: number): void {
      const askedMs = nowMs + Math.max(0, Math.min(MAX_PAUSE_MS, afterMs))
      const untilMs = Math.max(askedMs, resting.get(targetId) ?? 0)
      setNewest(resting, targetId, untilMs, MAX_PAUSED)
      setNewest(single, targetId, untilMs + SINGLE_MS, MAX_PAUSED)
      nextResumeMs = Math.min(nextResumeMs, untilMs)
      due.delete(targetId)
    },
    /** Makes targets due whose rest has ended. Returns when the next one ends. */
    resume(nowMs: number): number {
      if (nextResumeMs > nowMs) return nextResumeMs
      nextResumeMs = Infinity
      for (const [targetId, untilMs] of resting) {
        if (untilMs > nowMs) nextResumeMs = Math.min(nextResumeMs, untilMs)
        else {
          resting.delete(targetId)
          due.set(targetId, EARLIEST)
        }
      }
      return nextResumeMs
    },
    isPaused,
    /** Returns how many more attempts each target can have that has fewer than `perTarget` left. */
    listRooms(nowMs: number): { targetId: string; room: number }[] {
      const targetIds = new Set(
        [running, hanging, paused, resting, single].flatMap(targets => [...targets.keys()]),
      )
      return [...targetIds].map(targetId => ({
        targetId,
        room: Math.max(0, findRoom(targetId, nowMs)),
      }))
    },
    /** True if a target is known to have due deliveries. */
    get hasDue() {
      return due.size > 0
    },
  }
}
