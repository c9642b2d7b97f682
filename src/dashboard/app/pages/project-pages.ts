/** The pages of a project that are no settings, and the overview of all projects. */
import './shared.ts'

export { default as Channel } from './channel.tsx'
export { default as Channels } from './channels.tsx'
export { default as Insights } from './insights.tsx'
export { default as Open } from './open.tsx'
export { default as Overview } from './overview.tsx'
export { default as User } from './user.tsx'
export { default as Users } from './users.tsx'
