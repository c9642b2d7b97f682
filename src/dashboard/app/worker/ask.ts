/** Firefox lets a worker open a window within a second of the click, after two questions. */
const ANSWER_MS = 350

/** A tab or a worker. */
interface Asked {
  postMessage(question: unknown, ports: Transferable[]): void
}

/** The question whether a tab shows the page of a path. */
export interface PathQuestion {
  path: string
  /** True if the tab shall open the page. */
  mayOpen: boolean
}

/** `shown`: the page is on the screen. `free`: the tab can open it, and nothing would be lost. */
export type PathAnswer = 'shown' | 'free' | 'busy'

/** Resolves with the answer to a question; undefined if none comes in time. */
export function ask<Answer>(asked: Asked, question: unknown): Promise<Answer | undefined> {
  const { port1, port2 } = new MessageChannel()
  return new Promise(resolve => {
    // Each side checks what it asks and answers; others are ignored.
    port1.onmessage = ({ data }) => resolve(data as Answer)
    setTimeout(resolve, ANSWER_MS)
    asked.postMessage(question, [port2])
  })
}
