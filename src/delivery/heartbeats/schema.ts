import { Type, type Static } from '@sinclair/typebox'
import { OneOf, Text, TrimmedText } from '../../http/rules.ts'
import { closed, Nullable, Timestamp } from '../../http/schema-parts.ts'

const YEAR_S = 365 * 86_400
const Seconds = (description: string) => Type.Integer({ minimum: 10, maximum: YEAR_S, description })

/** A job that reports by pings, and of which members are told if it does not. */
export const Heartbeat = Type.Object(
  {
    id: Type.String({ examples: ['hbt_01kadz5p6vf2w8y3m4n5q6r7s8'] }),
    name: Type.String(),
    channelId: Type.String(),
    channelName: Type.String(),
    periodSeconds: Type.Integer(),
    graceSeconds: Type.Integer(),
    status: OneOf(
      ['new', 'up', 'down', 'paused'],
      '`new` has reported nothing yet. `down` has failed, or has not reported in time.',
    ),
    url: Nullable(
      Type.String(),
      'The secret address of its pings. Null for viewers, who cannot ping.',
    ),
    createdAt: Timestamp,
    lastPingAt: Nullable(Timestamp, 'The last ping that succeeded or failed.'),
    startedAt: Nullable(Timestamp, 'The start of the run that has not ended.'),
    dueAt: Nullable(Timestamp, 'When it is down without another ping.'),
  },
  { $id: 'Heartbeat', additionalProperties: false },
)
export type Heartbeat = Static<typeof Heartbeat>

/** The heartbeats of a project, by name. */
export const Heartbeats = Type.Object({ items: Type.Array(Heartbeat) }, closed)

/** A heartbeat to create. */
export const NewHeartbeat = Type.Object(
  {
    name: TrimmedText({ maxLength: 100 }),
    channel: Text({
      minLength: 1,
      maxLength: 255,
      description: 'Name or id of the channel that tells of it.',
    }),
    periodSeconds: Seconds('The time between two pings.'),
    graceSeconds: Seconds('How late a ping may be, and how long a run may take.'),
  },
  {
    examples: [
      { name: 'Nightly backup', channel: 'ops', periodSeconds: 86_400, graceSeconds: 3_600 },
    ],
  },
)
export type NewHeartbeat = Static<typeof NewHeartbeat>

/** Changes of a heartbeat. Absent fields stay. */
export const HeartbeatEdit = Type.Composite(
  [
    Type.Partial(NewHeartbeat),
    Type.Object({
      isPaused: Type.Optional(
        Type.Boolean({ description: 'True expects nothing until the next success or failure.' }),
      ),
      newAddress: Type.Optional(
        Type.Boolean({
          description: 'True gives it another address. The present one is unknown then.',
        }),
      ),
    }),
  ],
  { examples: [{ isPaused: true }] },
)
export type HeartbeatEdit = Static<typeof HeartbeatEdit>

/** The newest 20 pings of a heartbeat, newest first. */
export const HeartbeatPings = Type.Object(
  {
    items: Type.Array(
      Type.Object(
        {
          number: Type.Integer({ description: 'Counts the pings of the heartbeat from 1.' }),
          at: Timestamp,
          kind: OneOf(['success', 'start', 'fail', 'log'], 'The report.'),
          exitCode: Nullable(Type.Integer()),
          runId: Nullable(Type.String(), 'The `rid` of its run.'),
          tookMs: Nullable(Type.Integer(), 'The length of the run that it ended.'),
          method: Type.String(),
          userAgent: Type.String(),
          body: Type.String({ description: 'Its first 10,000 characters.' }),
        },
        closed,
      ),
    ),
  },
  closed,
)
export type HeartbeatPings = Static<typeof HeartbeatPings>
