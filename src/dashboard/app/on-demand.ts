// One script with what readers open from the keyboard or the list, such as an event.
import './pages/shared.ts'

export { EventPanel } from './event/panel.tsx'
export { Palette, ShortcutsHelp } from './palette/palette.tsx'
export { Completion } from './search/completion.tsx'
export { isUnfinished } from './search/fragment.ts'
export { SaveSearch } from './views/save-search.tsx'
export { Explanation, needsExplanation } from './search/explanation.tsx'
