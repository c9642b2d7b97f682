import type { Account } from '../../../access/sign-in/schema.ts'

/** The props of a page outside of a project. */
export interface AccountPageProps {
  account: Account
  /** The public ID of an organization. The account may not be a member. */
  organization?: string | undefined
  /** The tab of the organization; undefined for the first. */
  tab?: string | undefined
  /** The ID of the event to find. */
  event?: string | undefined
}

/** The props of a page of a project. */
export interface ProjectPageProps {
  account: Account
  /** The public ID of a project of which the account is a member. */
  project: string
  /** The ID of the open event. */
  event?: string | undefined
  /** The user_id on a user's page. */
  user?: string | undefined
  /** The channel ID on a channel's page. */
  channel?: string | undefined
  /** The webhook ID on a webhook's page. */
  webhook?: string | undefined
}
