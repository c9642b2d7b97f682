/** The places of a project beside its feed, in one piece: they share so much that they are smaller together. */
export { default as Keys } from './keys.tsx'
export { default as User } from './user.tsx'
export { default as Users } from './users.tsx'
export { default as Webhook } from './webhook.tsx'
export { default as Webhooks } from './webhooks.tsx'
