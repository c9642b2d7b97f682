import { Type, type Static } from '@sinclair/typebox'
import { TrimmedText } from '../../http/rules.ts'
import { closed, Nullable, Timestamp } from '../../http/schema-parts.ts'
import { SearchText } from '../events/search-schema.ts'

/** The most views that an account has in a project, and the most that a project shares. */
export const MAX_VIEWS = 50
/** Counts of new events end here. */
export const MAX_NEW = 100

const Name = TrimmedText({ maxLength: 60 })

/** A saved search of a project: an own one, or one that all members share. */
export const View = Type.Object(
  {
    id: Type.String(),
    name: Type.String(),
    q: Type.String({ description: 'The search.' }),
    isShared: Type.Boolean({ description: 'True if all members see it.' }),
    hasBell: Type.Boolean({
      description: 'True if its matches notify you, also in muted channels.',
    }),
    newEvents: Nullable(
      Type.Integer({ minimum: 0, maximum: MAX_NEW }),
      'Matches since you last looked, up to 100; null if they were not counted in time.',
    ),
    isPartial: Type.Boolean({ description: 'True if there may be more new events.' }),
    createdAt: Timestamp,
  },
  { $id: 'View', additionalProperties: false },
)
export type View = Static<typeof View>

/** The views that an account sees in a project: its own ones, then the shared ones, by name. */
export const Views = Type.Object({ items: Type.Array(View) }, closed)
export type Views = Static<typeof Views>

const IsShared = Type.Boolean({
  description: 'True shares it with all members. Sharing requires the role member.',
})

export const NewView = Type.Object(
  { name: Name, q: SearchText, isShared: Type.Optional(IsShared) },
  { examples: [{ name: 'Big payments', q: 'channel:payments meta:plan=enterprise' }] },
)
export type NewView = Static<typeof NewView>

export const ViewEdit = Type.Partial(NewView, { examples: [{ name: 'VIPs', isShared: true }] })
export type ViewEdit = Static<typeof ViewEdit>

/** Marks the matches of a view up to `seq` as seen. */
export const ViewMarkInput = Type.Object(
  { seq: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }) },
  { examples: [{ seq: 42 }] },
)
export const ViewMark = Type.Object({ seq: Type.Integer({ minimum: 0 }) }, closed)

/** Turns the bell of a view on or off, for the own account. */
export const ViewBell = Type.Object(
  { isOn: Type.Boolean() },
  { ...closed, examples: [{ isOn: true }] },
)
