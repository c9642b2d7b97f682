import { Type, type Static } from '@sinclair/typebox'
import { closed, Moment, Nullable } from '../http/shapes.ts'

const Count = Type.Integer({ minimum: 0 })

/** The server itself, as its operator sees it. */
export const ServerInfo = Type.Object(
  {
    version: Type.String(),
    runtime: Type.String(),
    /** Where the program's source can be had, if the package says. */
    source: Type.Optional(Type.String()),
    url: Type.String(),
    /** Whether BASE_URL says so; without it the server goes by its own port. */
    isUrlSet: Type.Boolean(),
    isHttps: Type.Boolean(),
    startedAt: Moment,
    database: Type.Object(
      { kind: Type.String(), version: Type.String(), bytes: Type.Integer() },
      closed,
    ),
    /** Of DATA_DIR; null where there is none, or nobody could tell within a second. */
    disk: Nullable(
      Type.Object({ folder: Type.String(), freeBytes: Count, totalBytes: Count }, closed),
    ),
    projects: Type.Integer(),
    /** Accepted so far by the projects that there are. */
    events: Type.Integer(),
    /** Live feeds that are open on this process. */
    sockets: Count,
    deliveries: Type.Object(
      {
        /** What waits, of each kind; more than 100,000 are not counted. */
        pending: Type.Object({ push: Count, webhook: Count }, closed),
        /** How long the oldest one that is due has been waiting, in milliseconds. */
        oldestMs: Count,
        /** Attempts under way on this process. */
        running: Count,
      },
      closed,
    ),
    push: Type.Object(
      {
        /** Of the key that signs pushes; null until the first device asks for it. */
        keyId: Nullable(Type.String()),
        /** Whom push services may write to; null where neither VAPID_SUBJECT nor the operator's address serves. */
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
