// One script, which loads when the search box gets the focus.
export { Completion } from './completion.tsx'
export { Explanation, needsExplanation } from './explanation.tsx'
