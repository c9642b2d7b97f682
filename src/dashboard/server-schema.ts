import { Type, type Static } from '@sinclair/typebox'
import { closed, Timestamp, Nullable } from '../http/schema-parts.ts'

const Count = Type.Integer({ minimum: 0 })

/** The state of the server, for its operator. */
export const ServerInfo = Type.Object(
  {
    version: Type.String(),
    runtime: Type.String(),
    /** The URL of the source code, if package.json has one. */
    source: Type.Optional(Type.String()),
    url: Type.String(),
    /** True if BASE_URL is set. Otherwise the URL is derived from the port. */
    isUrlSet: Type.Boolean(),
    isHttps: Type.Boolean(),
    startedAt: Timestamp,
    database: Type.Object(
      {
        kind: Type.String(),
        version: Type.String(),
        bytes: Type.Integer(),
      },
      closed,
    ),
    /**
     * The disk of DATA_DIR. Null without DATA_DIR, or if the disk did not respond within a second.
     */
    disk: Nullable(
      Type.Object({ folder: Type.String(), freeBytes: Count, totalBytes: Count }, closed),
    ),
    projects: Type.Integer(),
    /** The number of events ever accepted by the existing projects. */
    events: Type.Integer(),
    /** Open live feed sockets of this process. */
    sockets: Count,
    deliveries: Type.Object(
      {
        /** Waiting deliveries of each kind, counted up to 100,000. */
        pending: Type.Object({ push: Count, webhook: Count }, closed),
        /** How long the oldest due delivery is overdue, in milliseconds. */
        oldestMs: Count,
        /** Running attempts of this process. */
        running: Count,
      },
      closed,
    ),
    push: Type.Object(
      {
        /** The id of the key that signs pushes. Null until the first device asks for it. */
        keyId: Nullable(Type.String()),
        /**
         * The contact for push services: VAPID_SUBJECT or the operator's address. Null without
         * either.
         */
        subject: Nullable(Type.String()),
        isSubjectSet: Type.Boolean(),
        devices: Count,
      },
      closed,
    ),
  },
  closed,
)
export type ServerInfo = Static<typeof ServerInfo>

const Quota = Type.Object({ used: Count, limit: Count }, closed)

/** The usage of an organization beside its quotas. */
export const OrganizationUsage = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    /** Events since the start of the minute. */
    events: Quota,
    /** Bytes of events and users since midnight UTC. */
    bytes: Quota,
    /** Counted up to 10,000. */
    channels: Quota,
    webhooks: Quota,
  },
  closed,
)
export type OrganizationUsage = Static<typeof OrganizationUsage>
