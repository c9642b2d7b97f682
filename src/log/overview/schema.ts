import { Type, type Static } from '@sinclair/typebox'
import { Named } from '../../access/guard/schema.ts'
import { OneOf } from '../../http/rules.ts'
import { LEVELS } from '../channels/level.ts'
import { closed, Nullable, Timestamp } from '../../http/schema-parts.ts'

/** The most new events, alarms and failed deliveries that are counted. */
export const MAX_COUNTED = 100

const Count = Type.Integer({ minimum: 0 })
const UpTo100 = Type.Integer({ minimum: 0, maximum: MAX_COUNTED })

/** A span with far more, or far fewer, events than the same hours of the past weeks. */
const Unusual = Type.Object(
  {
    channel: Nullable(
      Type.Object(
        { id: Type.String(), name: Type.String(), icon: Nullable(Type.String()) },
        closed,
      ),
      'Null for the project as a whole.',
    ),
    kind: OneOf(['loud', 'silent']),
    from: Timestamp,
    to: Timestamp,
    count: Count,
    usual: Type.Object(
      { least: Count, most: Count },
      { ...closed, description: 'The counts in the same hours of up to four past weeks.' },
    ),
  },
  closed,
)
export type Unusual = Static<typeof Unusual>

/** The project of an event among all projects of an account. */
export const ProjectOfEvent = Type.Object({ id: Type.String() }, closed)

/** A project as one of its members sees it among all of theirs. */
export const OverviewProject = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    organization: Named,
    head: Type.Integer({ minimum: 0, description: 'The last seq of the log.' }),
    unseen: Type.Integer({
      minimum: 0,
      maximum: MAX_COUNTED,
      description: 'The events since the last one that you have seen, up to 100.',
    }),
    newest: Type.Array(
      Type.Object(
        {
          id: Type.String(),
          title: Type.String(),
          icon: Nullable(Type.String()),
          channelName: Type.String(),
          createdAt: Timestamp,
          level: Nullable(OneOf(LEVELS), 'Null for `normal`.'),
        },
        closed,
      ),
      { description: 'The three newest events.' },
    ),
    firing: Type.Integer({
      ...{ minimum: 0, maximum: MAX_COUNTED },
      description: 'The threads that are firing and that nobody has acknowledged, up to 100.',
    }),
    acknowledged: Type.Integer({
      ...{ minimum: 0, maximum: MAX_COUNTED },
      description: 'The threads that are firing and acknowledged.',
    }),
    questions: Type.Integer({
      ...{ minimum: 0, maximum: MAX_COUNTED },
      description: 'The questions that wait for an answer, up to 100.',
    }),
    isSilenced: Type.Boolean({ description: 'True while nobody is notified of its events.' }),
    hours: Type.Array(Count, {
      description: 'The events of the last 24 hours, the present one included, oldest first.',
    }),
    unusual: Type.Array(Unusual, {
      description: 'Of the project, else of up to three of its channels.',
    }),
    failed: Nullable(
      Type.Object(
        {
          deliveries: UpTo100,
          lastAt: Nullable(Timestamp),
          webhooks: Type.Integer({ minimum: 0, description: 'Paused or disabled webhooks.' }),
        },
        closed,
      ),
      'Deliveries that were given up in the last seven days. Null unless you are an admin.',
    ),
    isComplete: Type.Boolean({
      description:
        'False when reading took too long: then `hours` and `unusual` are empty, and the other fields can be.',
    }),
  },
  { $id: 'OverviewProject', additionalProperties: false },
)
export type OverviewProject = Static<typeof OverviewProject>

/** All projects of an account, by organization, oldest first. */
export const Overview = Type.Object(
  {
    projects: Type.Array(OverviewProject),
    more: Type.Integer({ minimum: 0, description: 'The projects beyond the first 100.' }),
  },
  closed,
)
export type Overview = Static<typeof Overview>
