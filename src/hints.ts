/**
 * Something that live sockets are to learn, named by uuids. Every kind is a matter of milliseconds, not of being right:
 * a hint that is lost costs at most a second, but for `deleted`, `restored` and `unread`, which a reader otherwise sees when it
 * next loads its page.
 */
export type Hint =
  | { kind: 'events'; projectId: string }
  | { kind: 'deleted' | 'restored'; projectId: string; seq: number }
  /** A person has read, or marked as unread, something of a project. */
  | { kind: 'unread'; projectId: string; personId: string }
  /** Somebody may no longer see something: a session, a membership, a project or an organization is gone. */
  | { kind: 'access' }

export interface Hints {
  /**
   * Tells the sockets of every process, those of this one at once. Call it when the transaction has committed. It waits
   * for nothing and never throws.
   */
  tell(hints: readonly Hint[]): void
}
