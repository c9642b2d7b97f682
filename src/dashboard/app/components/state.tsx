import type { State } from '../../../log/events/state.ts'
import { capitalize } from './level.tsx'

const CIRCLE = 'M8 2a6 6 0 1 0 .1 0z'
const CHECK = 'm2.5 8.5 4 4 7-8'
/** A filled circle, a clock, a check mark and a cross, with the looks of their badges. */
const MARKS = {
  firing: [CIRCLE, 'bad', 'currentcolor'],
  running: [`${CIRCLE}M8 5v3l2 2`, ''],
  resolved: [CHECK, 'good'],
  succeeded: [CHECK, 'good'],
  failed: ['m3 3 10 10m0-10L3 13', 'bad'],
} as const satisfies Record<State, readonly string[]>

const QUESTION = { running: 'Waits for an answer', resolved: 'Ended' }

/** Returns whether a thread is that of a question. */
export function isQuestion(thread = ''): boolean {
  return thread.startsWith('question:evt_')
}

interface StateOptions {
  state: State | undefined
  /** The key of the thread, which tells of a question. */
  thread?: string | undefined
}

/** The state of a thread: a shape and a word. Nothing without a state. */
export function StateMark({ state, thread = '' }: StateOptions) {
  if (!state) return null
  const words: Partial<Record<State, string>> = isQuestion(thread) ? QUESTION : {}
  const word = words[state] ?? capitalize(state)
  // Its end can be that nobody answered.
  const [path, look, fill] = word === QUESTION.resolved ? ['M3 8h10', ''] : MARKS[state]
  return (
    <span class={`badge badge-${look}`} title={word}>
      <svg class="stroke" viewBox="0 0 16 16" width="12" height="12" aria-hidden="true">
        <path d={path} fill={fill} />
      </svg>{' '}
      {word}
    </span>
  )
}
