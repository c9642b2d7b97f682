import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Static } from '@sinclair/typebox'
import { renderSchemaTypes } from '../../../clients/typescript/schema-types.ts'
import type * as types from '../../../clients/typescript/src/schema.ts'
import * as keys from '../../../src/access/keys/schema.ts'
import * as envelope from '../../../src/http/envelope.ts'
import * as channels from '../../../src/log/channels/schema.ts'
import * as events from '../../../src/log/events/schema.ts'
import * as threads from '../../../src/log/events/thread-schema.ts'
import * as identities from '../../../src/log/identities/schema.ts'
import { ROOT } from '../../support/docs.ts'

test('the types of the client are those of the schemas', async () => {
  const file = readFileSync(join(ROOT, 'clients/typescript/src/schema.ts'), 'utf8')
  expect(file, 'Run `bun run build:client`').toBe(await renderSchemaTypes())
  // The compiler checks these, in both directions.
  const same: [
    Same<types.Channel, Static<typeof channels.Channel>>,
    Same<types.Detail, Static<typeof envelope.Detail>>,
    Same<types.Erased, Static<typeof identities.Erased>>,
    Same<types.Event, Static<typeof events.Event>>,
    Same<types.EventFilters, Static<typeof events.EventQuery>>,
    Same<types.EventInput, Static<typeof events.EventInput>>,
    Same<types.Identified, Static<typeof identities.Identified>>,
    Same<types.IdentifyInput, Static<typeof identities.IdentifyInput>>,
    Same<types.Me, Static<typeof keys.Me>>,
    Same<types.Thread, Static<typeof threads.Thread>>,
    Same<types.ThreadFilters, Static<typeof threads.ThreadQuery>>,
    Same<types.User, Static<typeof identities.User>>,
  ] = [true, true, true, true, true, true, true, true, true, true, true, true]
  expect(same).toHaveLength(12)
})

type Same<A, B> = [A, B] extends [B, A] ? true : false
