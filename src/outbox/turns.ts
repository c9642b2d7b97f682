import type { WaitingTarget, Wish } from './claim.ts'

/** Whose turn it is: every target with due deliveries comes in turn, new ones first. Knows no clock. */
export interface Turns {
  /** What a walk over the targets has found at `nowMs`. */
  see(found: readonly WaitingTarget[], nowMs: number): void
  /** The next targets to claim for, `free` jobs in all, and how many of each. */
  next(free: number, nowMs: number): Wish[]
  /** What a claim brought. Where `isAll`, whoever got less than was wished for has nothing more that is due. */
  got(
    wishes: readonly Wish[],
    brought: { counts: ReadonlyMap<string, number>; isAll: boolean },
  ): void
  start(targetId: string): void
  end(targetId: string): void
  /** An attempt hangs: until it ends the target gets no other. */
  hang(targetId: string): void
  unhang(targetId: string): void
  /** Leaves a target alone until then. */
  pause(targetId: string, untilMs: number): void
  isPaused(targetId: string, nowMs: number): boolean
  /** Whether a target is known to have due deliveries. */
  readonly hasDue: boolean
}

/** A target that was postponed is asked about again after this time at the latest: its pause may be over sooner. */
const MAX_PAUSE_MS = 30_000
const MAX_PAUSED = 10_000

export function createTurns(perTarget: number): Turns {
  // In the order of turns: who has had one goes to the end.
  let due = new Map<string, string>()
  const running = new Map<string, number>()
  const hanging = new Map<string, number>()
  const paused = new Map<string, number>()

  const change = (counts: Map<string, number>, targetId: string, by: 1 | -1) => {
    const count = (counts.get(targetId) ?? 0) + by
    if (count > 0) counts.set(targetId, count)
    else counts.delete(targetId)
  }

  const isPaused = (targetId: string, nowMs: number) => (paused.get(targetId) ?? 0) > nowMs

  function findRoom(targetId: string, nowMs: number): number {
    if (hanging.has(targetId) || isPaused(targetId, nowMs)) return 0
    return perTarget - (running.get(targetId) ?? 0)
  }

  return {
    see(found, nowMs) {
      for (const [targetId, untilMs] of paused) if (untilMs <= nowMs) paused.delete(targetId)
      const nowDue = new Map(
        found.filter(({ dueInMs }) => dueInMs <= 0).map(one => [one.targetId, one.dueAt]),
      )
      const known = [...due.keys()].filter(targetId => nowDue.has(targetId))
      const before = new Set(known)
      const fresh = [...nowDue.keys()].filter(targetId => !before.has(targetId))
      due = new Map([...fresh, ...known].map(targetId => [targetId, nowDue.get(targetId) ?? '']))
    },
    next(free, nowMs) {
      const chosen: Wish[] = []
      for (const [targetId, dueAt] of due) {
        if (chosen.length >= free) break
        const room = findRoom(targetId, nowMs)
        if (room > 0) chosen.push({ targetId, room, dueAt })
      }
      const share = Math.ceil(free / Math.max(1, chosen.length)) + 1
      return chosen.map(wish => ({ ...wish, room: Math.min(wish.room, share) }))
    },
    got(wishes, { counts, isAll }) {
      for (const { targetId, room } of wishes) {
        const dueAt = due.get(targetId)
        if (dueAt === undefined) continue
        due.delete(targetId)
        if (!isAll || (counts.get(targetId) ?? 0) >= room) due.set(targetId, dueAt)
      }
    },
    start: targetId => change(running, targetId, 1),
    end: targetId => change(running, targetId, -1),
    hang: targetId => change(hanging, targetId, 1),
    unhang: targetId => change(hanging, targetId, -1),
    pause(targetId, untilMs) {
      if (paused.size >= MAX_PAUSED) paused.delete(paused.keys().next().value ?? '')
      paused.set(targetId, untilMs)
    },
    isPaused,
    get hasDue() {
      return due.size > 0
    },
  }
}

/** For how long a target is left alone that was postponed for so long. */
export function toPauseMs(afterMs: number): number {
  return Math.max(0, Math.min(MAX_PAUSE_MS, afterMs))
}
