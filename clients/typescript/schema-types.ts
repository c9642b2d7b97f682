import { compile, type JSONSchema } from 'json-schema-to-typescript'
import style from '../../.oxfmtrc.json' with { type: 'json' }
import { Me } from '../../src/access/keys/schema.ts'
import { Detail } from '../../src/http/envelope.ts'
import { Channel } from '../../src/log/channels/schema.ts'
import { Answer } from '../../src/delivery/questions/schema.ts'
import { Event, EventDetail, EventQuery, EventRequest } from '../../src/log/events/schema.ts'
import { Thread, ThreadQuery } from '../../src/log/events/thread-schema.ts'
import { Erased, Identified, IdentifyInput, User } from '../../src/log/identities/schema.ts'

/** The types of the client by their names, with the server's schemas that they come from. */
const SCHEMAS = {
  Answer,
  Channel,
  Detail,
  Erased,
  Event,
  EventDetail,
  EventInput: EventRequest,
  EventFilters: EventQuery,
  Identified,
  IdentifyInput,
  Me,
  Thread,
  ThreadFilters: ThreadQuery,
  User,
}
const HEADER = '// Made from the schemas of the server by `bun run build:client`. Do not edit.'

/** Renders the TypeScript types of requests and responses, the content of `src/schema.ts`. */
export async function renderSchemaTypes(): Promise<string> {
  const types = await Promise.all(
    Object.entries(SCHEMAS).map(([name, schema]) => {
      // An $id would replace the name.
      const { $id, ...json } = JSON.parse(JSON.stringify(schema)) as JSONSchema
      return compile(json, name, {
        additionalProperties: false,
        bannerComment: '',
        ignoreMinAndMaxItems: true,
        style: { semi: style.semi, singleQuote: style.singleQuote, printWidth: style.printWidth },
      })
    }),
  )
  return [HEADER, ...types].join('\n')
}
