/** Every place beside the feed, in one piece: they share so much that they are smaller together. */
export { default as Account } from './account.tsx'
export { default as Keys } from './keys.tsx'
export { default as Organization } from './organization.tsx'
export { default as Server } from './server.tsx'
export { default as User } from './user.tsx'
export { default as Users } from './users.tsx'
export { default as Webhook } from './webhook.tsx'
export { default as Webhooks } from './webhooks.tsx'
