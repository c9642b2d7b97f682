import type { ComponentChildren } from 'preact'
import {
  applyFixes,
  findFix,
  findUnknownKeys,
  type SearchFix,
} from '../../../events/search-explanation.ts'
import {
  MAX_DEPTH,
  MAX_LENGTH,
  MAX_TERMS,
  parseSearch,
  type SearchProblem,
} from '../../../events/search-query.ts'
import type { MessageKey } from '../locales/catalogue.ts'
import { toRich } from '../locales/translate.tsx'

const PROBLEMS = {
  length: 'search.length',
  terms: 'search.terms',
  depth: 'search.depth',
  time: 'search.time',
  has: 'search.has',
  meta: 'search.meta',
  or: 'search.operator',
  open: 'search.notClosed',
  close: 'search.noOpening',
  empty: 'search.empty',
} as const satisfies Record<SearchProblem, MessageKey>
const LIMITS = { length: MAX_LENGTH, terms: MAX_TERMS, depth: MAX_DEPTH }

type Parsed = ReturnType<typeof parseSearch>

interface ExplanationOptions {
  id: string
  /** The search as typed. */
  text: string
  /** Called with the search without one of its problems. */
  onFix(text: string): void
}

/** Returns whether there is anything to explain about a search. */
export function needsExplanation(text: string): boolean {
  const parsed = parseSearch(text)
  return parsed.issues.length + findUnknownKeys(text, parsed).length > 0
}

/** Explains the invalid and misspelled parts of a search, and offers corrections. */
export function Explanation({ id, text, onFix }: ExplanationOptions) {
  const parsed = parseSearch(text)
  return (
    <div id={id} role="alert">
      <ul class="search-issues">
        {groupIssues(parsed.issues, text).map(alike => {
          const { start, end, problem } = alike[0]!
          const count = Object.entries(LIMITS).find(([name]) => name === problem)?.[1] ?? 0
          return (
            <li key={`${problem} ${start}`} class="issue">
              {problem !== 'length' && (
                <>
                  <code>
                    <bdi>{text.slice(start, end)}</bdi>
                  </code>{' '}
                </>
              )}
              {toRich({ key: PROBLEMS[problem], values: { count }, elements: { code: toCode } })}{' '}
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
            {toRich({
              key: 'search.unknownName',
              values: { name: <bdi>{fix.name}</bdi> },
              elements: { code: toCode },
            })}{' '}
            <FixButton text={text} fixes={[fix]} onFix={onFix} />
          </li>
        ))}
      </ul>
    </div>
  )
}

/** Groups the issues that read the same, such as those of three open parentheses. */
function groupIssues(issues: Parsed['issues'], text: string): Parsed['issues'][] {
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
    <button type="button" class="quiet-button" onClick={() => onFix(fixed)}>
      {toRich({
        key: 'search.didYouMean',
        values: { text: <bdi>{fixed}</bdi> },
        elements: { code: toCode },
      })}
    </button>
  )
}

function toCode(text: ComponentChildren) {
  return <code>{text}</code>
}
