// The pages of a person, and of what they belong to: one script.
export { default as Notifications } from './notifications.tsx'
export { default as AccountSettings } from './account.tsx'
export { default as Organization } from './organization.tsx'
export { default as Server } from './server.tsx'
