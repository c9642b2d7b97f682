import type account from './en/account.json'
import type actions from './en/actions.json'
import type app from './en/app.json'
import type audit from './en/audit.json'
import type auth from './en/auth.json'
import type channels from './en/channels.json'
import type common from './en/common.json'
import type display from './en/display.json'
import type event from './en/event.json'
import type feed from './en/feed.json'
import type insights from './en/insights.json'
import type keys from './en/keys.json'
import type openid from './en/openid.json'
import type organization from './en/organization.json'
import type overview from './en/overview.json'
import type palette from './en/palette.json'
import type push from './en/push.json'
import type search from './en/search.json'
import type server from './en/server.json'
import type start from './en/start.json'
import type users from './en/users.json'
import type views from './en/views.json'
import type webhooks from './en/webhooks.json'
import type words from './en/words.json'

/** All messages in English, by the file and the key that they have. Every language has the same. */
interface Catalogue {
  account: typeof account
  actions: typeof actions
  app: typeof app
  audit: typeof audit
  auth: typeof auth
  channels: typeof channels
  common: typeof common
  display: typeof display
  event: typeof event
  feed: typeof feed
  insights: typeof insights
  keys: typeof keys
  openid: typeof openid
  organization: typeof organization
  overview: typeof overview
  palette: typeof palette
  push: typeof push
  search: typeof search
  server: typeof server
  start: typeof start
  users: typeof users
  views: typeof views
  webhooks: typeof webhooks
  words: typeof words
}

/** The key of a message, such as `app.reload`. */
export type MessageKey = {
  [File in keyof Catalogue]: `${File}.${keyof Catalogue[File] & string}`
}[keyof Catalogue]
