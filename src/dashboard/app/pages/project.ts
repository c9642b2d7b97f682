// The pages of a project beside its feed: one script, which is smaller than one for each.
export { default as Users } from './users.tsx'
export { default as User } from './user.tsx'
export { default as Channels } from './channels.tsx'
export { default as Channel } from './channel.tsx'
export { default as Keys } from './keys.tsx'
export { default as Webhooks } from './webhooks.tsx'
export { default as Webhook } from './webhook.tsx'
