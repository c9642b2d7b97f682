/**
 * A change that live sockets should show at once; ids are uuids. Correctness never depends on a
 * hint. A lost `events` or `access` hint delays the change by at most a second. A lost hint of
 * another kind delays it until the page is loaded again.
 */
export type Hint =
  | { kind: 'events'; projectId: string }
  | { kind: 'deleted' | 'restored'; projectId: string; seq: number }
  /** A thread, or an event without one, was acknowledged. `seq` is its `threadSeq`, or its own. */
  | { kind: 'acknowledged'; projectId: string; seq: number }
  /** A question of this thread was answered or has expired, or its program has the answer. */
  | { kind: 'answered'; projectId: string; seq: number }
  /** The read marks of an account have changed. */
  | { kind: 'unread'; projectId: string; accountId: string }
  /** A session, a membership, a project or an organization has ended. */
  | { kind: 'access' }

export interface Hints {
  /**
   * Sends hints to the sockets of every process. Call it after the commit. It never waits and never
   * throws.
   */
  send(hints: readonly Hint[]): void
}
