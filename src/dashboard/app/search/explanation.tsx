import type { ComponentChildren } from 'preact'
import {
  applyFixes,
  findFix,
  findUnknownKeys,
  type SearchFix,
} from '../../../log/events/search-explanation.ts'
import {
  MAX_DEPTH,
  MAX_LENGTH,
  MAX_TERMS,
  type ParsedSearch,
  type SearchProblem,
} from '../../../log/events/search-query.ts'
import { parseTyped } from '../feed/reader-dates.ts'
import { QuietButton } from '../components/buttons.tsx'

const PROBLEMS: Readonly<Record<SearchProblem, () => ComponentChildren>> = {
  length: () =>
    `A search may have ${MAX_LENGTH.toLocaleString()} characters. A date takes up to 17.`,
  terms: () => `A search may have ${MAX_TERMS.toLocaleString()} terms.`,
  depth: () => `Parentheses may be nested ${MAX_DEPTH.toLocaleString()} levels deep.`,
  time: () => (
    <>
      Write a date, a date with a time, or a time ago, such as <code>2026-11-20</code>,{' '}
      <code>2026-11-20T09:30</code> or <code>2h</code>.
    </>
  ),
  date: () => 'This date does not exist.',
  has: () => (
    <>
      Write what an event has: <code>description</code>, <code>metadata</code>, <code>tags</code>,{' '}
      <code>user</code> or <code>icon</code>.
    </>
  ),
  level: () => (
    <>
      Write <code>level:</code> or <code>level&gt;=</code> and one of <code>low</code>,{' '}
      <code>normal</code>, <code>high</code> or <code>critical</code>. Put quotes around other text.
    </>
  ),
  state: () => (
    <>
      Write <code>running</code>, <code>firing</code>, <code>resolved</code>, <code>succeeded</code>{' '}
      or <code>failed</code>. Put quotes around other text.
    </>
  ),
  meta: () => (
    <>
      Write a name and a value, such as <code>meta:plan=pro</code>.
    </>
  ),
  nothing: () => 'Accents alone find nothing. Write the letters, too.',
  removed: () => 'This filter was removed in 0.4.0. Search for words of the title.',
  or: () => (
    <>
      <code>OR</code> needs a term on both sides.
    </>
  ),
  open: () => 'The closing parenthesis is missing.',
  close: () => 'The opening parenthesis is missing. Put quotes around text with parentheses.',
  empty: () => 'Parentheses must contain a term.',
}

interface ExplanationOptions {
  id: string
  /** The search as typed. */
  text: string
  /** Called with the search without one of its problems. */
  onFix(text: string): void
}

/** Returns whether there is anything to explain about a search. */
export function needsExplanation(text: string): boolean {
  const parsed = parseTyped(text)
  return parsed.issues.length + findUnknownKeys(text, parsed).length > 0
}

/** Explains the invalid and misspelled parts of a search, and offers corrections. */
export function Explanation({ id, text, onFix }: ExplanationOptions) {
  const parsed = parseTyped(text)
  return (
    <div id={id} role="alert">
      <ul class="search-issues">
        {groupIssues(parsed.issues, text).map(alike => {
          const { start, end, problem } = alike[0]!
          return (
            <li key={`${problem} ${start}`} class="issue">
              {problem !== 'length' && (
                <>
                  <code>
                    <bdi>{text.slice(start, end)}</bdi>
                  </code>{' '}
                </>
              )}
              {PROBLEMS[problem]()}{' '}
              <FixButton
                text={text}
                fixes={alike.flatMap(issue => findFix(text, issue) ?? [])}
                onFix={onFix}
              />
            </li>
          )
        })}
        {findUnknownKeys(text, parsed).map(fix => (
          <li key={`name ${fix.start}`}>
            <code>
              <bdi>{fix.name}</bdi>:
            </code>{' '}
            is not a filter, so it is searched as a word.{' '}
            <FixButton text={text} fixes={[fix]} onFix={onFix} />
          </li>
        ))}
      </ul>
    </div>
  )
}

/** Groups the issues that read the same, such as those of three open parentheses. */
function groupIssues(issues: ParsedSearch['issues'], text: string): ParsedSearch['issues'][] {
  const toKey = ({ problem, start, end }: (typeof issues)[number]) =>
    `${problem} ${text.slice(start, end)}`
  return [...Map.groupBy(issues, toKey).values()]
}

interface FixButtonOptions {
  text: string
  fixes: readonly SearchFix[]
  onFix(text: string): void
}

/** Offers the search with changes. */
function FixButton({ text, fixes, onFix }: FixButtonOptions) {
  const fixed = applyFixes(text, fixes)
  if (fixes.length === 0 || fixed === '') return null
  return (
    <QuietButton onClick={() => onFix(fixed)}>
      Did you mean{' '}
      <code>
        <bdi>{fixed}</bdi>
      </code>
      ?
    </QuietButton>
  )
}
