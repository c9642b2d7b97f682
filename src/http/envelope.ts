import { Type, type Static, type TSchema } from '@sinclair/typebox'
import { API_FAILURE_CODES, FAILURE_CODES } from '../base/errors.ts'
import { ISSUE_CODES } from './rules.ts'
import { closed } from './schema-parts.ts'

/** One validation error. `path` leads to the field, and is empty for an error of the whole body. */
export const Detail = Type.Object(
  {
    path: Type.Array(Type.String()),
    message: Type.String(),
    code: Type.Unsafe<(typeof ISSUE_CODES)[number]>({ type: 'string', enum: [...ISSUE_CODES] }),
  },
  { $id: 'Detail', additionalProperties: false },
)
export type Detail = Static<typeof Detail>

const RequestId = Type.String({
  format: 'uuid',
  description: 'The id of this request. The server logs the request under it.',
})

/**
 * A page of a list. `nextCursor` leads to the next page, also after a short one. It is null on the
 * last page.
 */
export interface Page<Item> {
  items: Item[]
  nextCursor: string | null
}

export function PageOf<Item extends TSchema>(item: Item) {
  return Type.Object(
    {
      items: Type.Array(item),
      nextCursor: Type.Union([Type.String(), Type.Null()], {
        description: 'Pass it as `cursor` to get the next page; null on the last page.',
      }),
    },
    closed,
  )
}

/**
 * Returns the schema of the success envelope around `data`. `description` describes the response.
 */
export function SuccessOf<Data extends TSchema>(data: Data, description = 'Done.') {
  return Type.Object(
    { success: Type.Literal(true), data, requestId: RequestId },
    { ...closed, description },
  )
}

/** Returns the schema of a file to download. `schema` describes its text, or each of its lines. */
export function FileOf<Schema extends TSchema>(
  schema: Schema,
  { description, contentType }: { description: string; contentType: string },
): Schema {
  return { ...schema, description, contentType }
}

/** Returns the success envelope around `dataJson`, as JSON text. */
export function toSuccess(dataJson: string, requestId: string): string {
  return `{"success":true,"data":${dataJson},"requestId":"${requestId}"}`
}

const failed = { success: Type.Literal(false), error: Type.String() }

export const ValidationFailure = Type.Object(
  { ...failed, details: Type.Array(Detail, { minItems: 1, maxItems: 20 }), requestId: RequestId },
  { $id: 'ValidationFailure', additionalProperties: false },
)
export const Unauthorized = Type.Object(
  { error: Type.String(), message: Type.String() },
  { $id: 'Unauthorized', additionalProperties: false },
)
export const RateLimited = Type.Object(
  { ...failed, message: Type.String(), requestId: RequestId },
  { $id: 'RateLimited', additionalProperties: false },
)
export const Failure = Type.Object(
  {
    ...failed,
    code: Type.Unsafe<(typeof FAILURE_CODES)[number]>({ type: 'string', enum: [...FAILURE_CODES] }),
    requestId: RequestId,
  },
  { $id: 'Failure', additionalProperties: false },
)
/** A failure of /api, which has more codes than /v1. */
export const ApiFailure = Type.Object(
  {
    ...failed,
    code: Type.Unsafe<(typeof FAILURE_CODES)[number] | (typeof API_FAILURE_CODES)[number]>({
      type: 'string',
      enum: [...FAILURE_CODES, ...API_FAILURE_CODES],
    }),
    details: Type.Optional(
      Type.Unsafe<object>({ type: 'object', description: 'The first answer, in a `conflict`.' }),
    ),
    requestId: RequestId,
  },
  { $id: 'ApiFailure', additionalProperties: false },
)
export const InternalFailure = Type.Object(
  { ...failed, requestId: RequestId },
  { $id: 'InternalFailure', additionalProperties: false },
)
