import { Type, type Static } from '@sinclair/typebox'
import { Text } from '../http/rules.ts'

export const Channel = Type.Object(
  {
    id: Type.String({ examples: ['chn_01kadz5p6vf2w8y3m4n5q6r7s8'] }),
    name: Type.String({ description: 'The first spelling that was used.' }),
    icon: Type.Union([Type.String(), Type.Null()]),
    createdAt: Type.String({ format: 'date-time' }),
  },
  { $id: 'Channel', additionalProperties: false },
)
export type Channel = Static<typeof Channel>

export const ChannelQuery = Type.Object({
  cursor: Type.Optional(
    Text({ minLength: 1, maxLength: 100, description: 'The nextCursor of the page before.' }),
  ),
  limit: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 100, default: 50, description: 'Items on the page.' }),
  ),
})
export type ChannelQuery = Static<typeof ChannelQuery>
