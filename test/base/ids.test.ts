import { describe, expect, test } from 'bun:test'
import { fromUUID } from 'typeid-js'
import { newId, parseId, toId, type IdPrefix } from '../../src/base/ids.ts'

const PREFIXES: IdPrefix[] = ['org', 'prj', 'chn', 'evt', 'idn', 'key', 'whk', 'psh']

test.each(PREFIXES)('contract §4 an id of %s is a TypeID with a uuid v7 inside', prefix => {
  const before = Date.now()
  const { id, uuid } = newId(prefix)
  expect(id).toMatch(new RegExp(`^${prefix}_[0-7][0-9a-hjkmnp-tv-z]{25}$`))
  expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  const ms = Number.parseInt(uuid.replaceAll('-', '').slice(0, 12), 16)
  expect(ms).toBeGreaterThanOrEqual(before)
  expect(ms).toBeLessThanOrEqual(Date.now())
  expect(toId(prefix, uuid)).toBe(id)
  expect(parseId(prefix, id)).toBe(uuid)
  expect(newId(prefix).id).not.toBe(id)
})

// The first is from the TypeID specification.
test.each([
  ['01h455vb4pex5vsknk084sn02q', '01890a5d-ac96-774b-bcce-b302099a8057'],
  ['0000000000e00800000000000g', '00000000-0000-7000-8000-000000000010'],
])('contract §4 the suffix %s is the uuid %s', (suffix, uuid) => {
  expect(parseId('evt', `evt_${suffix}`)).toBe(uuid)
  expect(toId('evt', uuid)).toBe(`evt_${suffix}`)
})

test('contract §4 every uuid is spelled as typeid-js spells it', () => {
  const ends = ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff']
  const uuids = [...ends, ...Array.from({ length: 1_000 }, () => crypto.randomUUID())]
  expect(uuids.map(uuid => toId('evt', uuid))).toEqual(uuids.map(uuid => fromUUID(uuid, 'evt')))
})

describe('an invalid id or one of another kind is refused without an exception:', () => {
  test.each([
    '',
    'evt_',
    'evt_x',
    'chn_01h455vb4pex5vsknk084sn02q',
    'EVT_01h455vb4pex5vsknk084sn02q',
    'evt_01H455VB4PEX5VSKNK084SN02Q',
    'evt_01h455vb4pex5vsknk084sn02',
    'evt_01h455vb4pex5vsknk084sn02q1',
    'evt_8zzzzzzzzzzzzzzzzzzzzzzzzz',
    'evt_01h455vb4pex5vsknk084sn02u',
    'evt_01h455vb4pex5vsknk084sn0🚀',
    'evt_01h455vb4pex5vsknk084sn02\u0000',
    'evt_../../../../../etc/passwd',
  ])('%p', id => {
    expect(parseId('evt', id)).toBeUndefined()
  })
})
