/** The settings of a project, an organization, the server and the account; and a missing page. */
import './shared.ts'

export { default as Account } from './account.tsx'
export { default as Heartbeats } from './heartbeats.tsx'
export { default as Keys } from './keys.tsx'
export { default as NotFound } from './not-found.tsx'
export { default as Notifications } from './notifications.tsx'
export { default as Organization } from './organization.tsx'
export { default as Rules } from './rules.tsx'
export { default as Server } from './server.tsx'
export { default as Silences } from './silences.tsx'
export { default as Webhook } from './webhook.tsx'
export { default as Webhooks } from './webhooks.tsx'
