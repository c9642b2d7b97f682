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
  /** True if the target gets one attempt at a time. */
  isSingle: boolean
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

export type FairQueue = ReturnType<typeof createFairQueue>

/**
 * Creates a fair queue: targets with due deliveries take turns, new ones first, and each has at
 * most `perTarget` attempts at a time. Callers pass times of `performance.now()`.
 */
export function createFairQueue(perTarget: number) {
  // In the order of their turns. A target moves to the end when it is served.
  let due = new Map<string, Pick<WaitingTarget, 'dueAt' | 'isSingle'>>()
  const running = new Map<string, number>()
  const hanging = new Map<string, number>()
  const paused = new Map<string, number>()

  function change(counts: Map<string, number>, targetId: string, by: 1 | -1): void {
    const count = (counts.get(targetId) ?? 0) + by
    if (count > 0) counts.set(targetId, count)
    else counts.delete(targetId)
  }

  function isPaused(targetId: string, nowMs: number): boolean {
    return (paused.get(targetId) ?? 0) > nowMs
  }

  function findRoom(targetId: string, nowMs: number): number {
    if (hanging.has(targetId) || isPaused(targetId, nowMs)) return 0
    const most = due.get(targetId)?.isSingle ? 1 : perTarget
    return most - (running.get(targetId) ?? 0)
  }

  return {
    /** Replaces the due targets by those of a scan. Known targets keep their order. */
    update(found: readonly WaitingTarget[], nowMs: number): void {
      for (const [targetId, untilMs] of paused) if (untilMs <= nowMs) paused.delete(targetId)
      const nowDue = new Map(
        found.filter(({ dueInMs }) => dueInMs <= 0).map(one => [one.targetId, one]),
      )
      const known = [...due.keys()].filter(targetId => nowDue.has(targetId))
      due = new Map([...nowDue].filter(([targetId]) => !due.has(targetId)))
      for (const targetId of known) due.set(targetId, nowDue.get(targetId)!)
    },
    /** Returns the next claim requests, for about `free` deliveries in all. */
    next(free: number, nowMs: number): ClaimRequest[] {
      const chosen: ClaimRequest[] = []
      for (const [targetId, { dueAt }] of due) {
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
        const target = due.get(targetId)
        if (!target) continue
        due.delete(targetId)
        if (!isAll || (counts.get(targetId) ?? 0) >= room) due.set(targetId, target)
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
    isPaused,
    /** Returns how many more attempts each target can have that has fewer than `perTarget` left. */
    listRooms(nowMs: number): { targetId: string; room: number }[] {
      const targetIds = new Set([running, hanging, paused].flatMap(targets => [...targets.keys()]))
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
