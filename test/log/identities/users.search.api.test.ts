import { beforeAll, describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { NIL_UUID } from '../../../src/base/ids.ts'
import { reindexUsers } from '../../../src/log/identities/user-indexer.ts'
import { listUsersJson } from '../../../src/log/identities/users.ts'
import { expectIssues } from '../../support/answers.ts'
import { matchesText } from '../../support/naive-words.ts'
import { randomPart, randomText, takePart } from '../../support/random-texts.ts'
import { hold } from '../../support/database-lock.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { newTenant, type TestTenant } from '../../support/worlds/tenant.ts'

/** Long runs set TIDINGS_FUZZ. */
const CASES = Number(process.env['TIDINGS_FUZZ'] ?? 12)

const server = withSharedServer()
beforeAll(async () => {
  // Only indexUsers indexes users here.
  await server.sql`alter function index_users rename to held_index_users`
})

/** Indexes users as the indexer does: from the first one on, until there are none. */
async function indexUsers({ projectId }: TestTenant): Promise<void> {
  for (let after = NIL_UUID, isMore = true; isMore;) {
    const [row] = await server.sql<[{ last: string | null }]>`
      select held_index_users(${projectId}, ${after}, 1000) as last
    `
    isMore = row.last !== null || after !== NIL_UUID
    after = row.last ?? NIL_UUID
  }
}

/** Makes the words of all users follow other rules, and lets them be indexed anew. */
async function outdate({ projectId }: TestTenant): Promise<void> {
  await server.sql`update user_words set words = '' where project_id = ${projectId}`
  await reindexUsers(server.sql, projectId)
}

/** Returns the user_ids of all pages. A search with a time of 0 examines one user for a page. */
async function find({ projectId }: TestTenant, search: string, ms?: number): Promise<string[]> {
  const found: string[] = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const query = { search, limit: 2, ...(cursor && { cursor }) }
    const page = JSON.parse(await listUsersJson(server.sql, projectId, query, ms))
    found.push(...(page.items as { userId: string }[]).map(({ userId }) => userId))
    cursor = page.nextCursor as string | null
  }
  return found
}

/** Searches users as changed ones, by the index, and one by one; all must agree. */
async function findInEachState(tenant: TestTenant, searches: readonly string[]) {
  const findAll = async (ms?: number) => {
    const all: [string, string[]][] = []
    for (const search of searches) all.push([search, await find(tenant, search, ms)])
    return all
  }
  const changed = await findAll()
  await indexUsers(tenant)
  expect(await findAll()).toEqual(changed)
  await outdate(tenant)
  expect(await findAll(0)).toEqual(changed)
  await indexUsers(tenant)
  expect(await findAll(0)).toEqual(changed)
  return changed
}

test('contract §9 users are found by the words that a reader sees, in every state of the index', async () => {
  const tenant = await newTenant(server)
  await tenant.identify('zoe', ['zoë@example.com'], { name: 'Zoë Müller', city: 'ZÜRICH' })
  await tenant.identify('user_42', ['acme:ops/42'], { name: '山田太郎', plan: 'C++ "pro" \\ x' })
  await tenant.identify('ÉMILE', ['Stra\u00dfe'], { name: 'e\u0301mile Ζωή', seats: 1.5 })
  await tenant.identify('user_43', ['@Grace'], { nested: [{ plan: 'plan-max' }], seats: 4300 })
  await tenant.identify('bare')
  const found: [string, string[]][] = [
    ['Zoe\u0308 mull', ['zoe']],
    ['MÜLLER zür', ['zoe']],
    ['zoe@ex', ['zoe']],
    ['müller-zürich', ['zoe']],
    ['zürich-müller', []],
    ['田太', ['user_42']],
    ['user_4', ['user_43', 'user_42']],
    ['@grace', ['user_43']],
    ['plan-m', ['user_43']],
    ['430', ['user_43']],
    ['ops/42', ['user_42']],
    ['émile ζωη', ['ÉMILE']],
    ['1.5', ['ÉMILE']],
    ['name', []],
  ]
  expect(
    await findInEachState(
      tenant,
      found.map(([search]) => search),
    ),
  ).toEqual(found)
})

test('contract §9 a search is refused when nothing can match, and beyond 20 words', async () => {
  const { account, path, projectId } = await newTenant(server)
  const get = (search: string) => account.get(`${path}/users?${new URLSearchParams({ search })}`)
  expect((await get('x '.repeat(20))).status).toBe(200)
  expectIssues(await get('x '.repeat(21)), 'search too_many')
  for (const marks of ['\u0301', ' \u0301 \u0308']) {
    expectIssues(await get(marks), 'search invalid_format')
    const suggestions = `${path}/suggestions?${new URLSearchParams({ field: 'user', text: marks })}`
    expect((await account.get(suggestions)).body.data.items).toEqual([])
  }
  await expect(listUsersJson(server.sql, projectId, { search: '\u0301' })).rejects.toThrow()
})

test('dashboard §6 a user with new, moved or removed aliases is found at once, and after indexing', async () => {
  const tenant = await newTenant(server, 'member')
  const { account, path } = tenant
  const findAll = () => Promise.all(['first', 'second', 'third'].map(name => find(tenant, name)))
  const check = async (expected: string[][]) => {
    expect(await findAll()).toEqual(expected)
    await indexUsers(tenant)
    expect(await findAll()).toEqual(expected)
  }
  await tenant.identify('ada', ['first'])
  await tenant.identify('bob')
  await check([['ada'], [], []])
  await tenant.identify('ada', ['second'])
  await check([['ada'], ['ada'], []])
  await account.post(`${path}/users/bob/aliases`, { alias: 'third' })
  await check([['ada'], ['ada'], ['bob']])
  await account.post(`${path}/users/bob/aliases`, { alias: 'first', from: 'ada' })
  await check([['bob'], ['ada'], ['bob']])
  await account.delete(`${path}/users/bob/aliases/third`)
  await check([['bob'], ['ada'], []])
})

test('a change while the indexer works is indexed later, also when the clock was ahead', async () => {
  const tenant = await newTenant(server)
  const { projectId, identify } = tenant
  await identify('ada')
  await indexUsers(tenant)
  await identify('ada', [], { city: 'London' })
  await server.sql`
    update unindexed_users set changed_at = now() + interval '1 hour' where project_id = ${projectId}
  `
  // The indexer has read the former properties, and has not stored their words yet.
  const indexing = await hold(
    server.sql,
    tx => tx`select held_index_users(${projectId}, ${NIL_UUID}, 1000)`,
  )
  await identify('ada', ['first'])
  await indexing.release()
  const [row] = await server.sql<[{ n: number }]>`
    select count(*)::int as n from unindexed_users where project_id = ${projectId}
  `
  expect(row.n).toBeGreaterThan(0)
  expect(await find(tenant, 'first')).toEqual(['ada'])
})

test("contract §9 the first 16,384 characters of a user's aliases are searched, in every state of the index", async () => {
  const tenant = await newTenant(server)
  const pad = 'x'.repeat(243)
  const aliases = Array.from({ length: 70 }, (_, n) => `a${100 + n} end${100 + n} ${pad}`)
  for (let n = 0; n < aliases.length; n += 20)
    await tenant.identify('ada', aliases.slice(n, n + 20), { city: 'London' })
  const found: [string, string[]][] = [
    ['end100', ['ada']],
    ['end163', ['ada']],
    ['end165', []],
    ['end169', []],
    ['london', ['ada']],
  ]
  const searches = found.map(([search]) => search)
  expect(await findInEachState(tenant, searches)).toEqual(found)
})

test('a search for users that takes all of its time still suggests those that it found', async () => {
  const { sql } = server
  const { account, path, identify } = await newTenant(server)
  await identify('ada')
  await sql`alter function search_users rename to quick_search_users`
  await sql.unsafe(`
    create function search_users(
      project uuid, words text[], before uuid, max_rows int, time_limit_ms float8,
      out ids uuid[], out reached uuid, out is_searchable boolean
    )
    language plpgsql as $$
    begin
      select f.* into ids, reached, is_searchable
        from quick_search_users(project, words, before, max_rows, time_limit_ms) f;
      perform pg_sleep(time_limit_ms / 1000);
    end
    $$
  `)
  try {
    const { body } = await account.get(`${path}/suggestions?field=user&text=ada`)
    expect(body.data.items).toEqual([{ value: 'ada', label: null }])
  } finally {
    await sql`drop function search_users`
    await sql`alter function quick_search_users rename to search_users`
  }
})

describe('on random texts of all planes,', () => {
  test('contract §9 users are found in every state of the index as by the simplest code', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(randomText, { minLength: 5, maxLength: 5 }),
        fc.array(randomPart, { minLength: 10, maxLength: 10 }),
        async (values, parts) => {
          const tenant = await newTenant(server)
          for (const [n, value] of values.entries()) await tenant.identify(`u${n}`, [], { value })
          const searches = parts
            .map((part, n) => takePart(values[n % values.length] ?? '', part))
            .filter(
              search => search.trim() !== '' && !/^[\p{M}\p{Cf}\s\u0001-\u0020]*$/u.test(search),
            )
          const expected = searches.map(search => [
            search,
            values
              .flatMap((value, n) => (matchesText(`u${n} ${value} `, search) ? [`u${n}`] : []))
              .toReversed(),
          ])
          expect<unknown>(await findInEachState(tenant, searches)).toEqual(expected)
        },
      ),
      { numRuns: CASES },
    )
  })
})
