// One script with what pages need soon after their first content.
export { Bars, CountsTable } from './charts/bars.tsx'
export { AccountItems, DisplayItems, ProjectItems } from './components/menu-items.tsx'
export { default as EventAlone } from './pages/event-redirect.tsx'
export { SampleDataNotice } from './first-run/sample-data.tsx'
export { ProjectSilence } from './threads/project-silence.tsx'
export { ViewList } from './views/view-list.tsx'
export { followWorker } from './worker/follow.ts'
