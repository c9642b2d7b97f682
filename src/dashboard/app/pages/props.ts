import type { Account } from '../../../accounts/schema.ts'

/** The props of a page outside of a project. */
export interface AccountPageProps {
  account: Account
  /** The public id of an organization, which the account may or may not be a member of. */
  organization?: string | undefined
  /** The id of the event that is looked for. */
  event?: string | undefined
}

/** The props of a page of a project. */
export interface ProjectPageProps {
  account: Account
  /** The public id of a project that the account is a member of. */
  project: string
  /** The id of the open event. */
  event?: string | undefined
  /** The user_id of the user that the page shows. */
  user?: string | undefined
  /** The id of the channel that the page shows. */
  channel?: string | undefined
  /** The id of the webhook that the page shows. */
  webhook?: string | undefined
}
