import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { toArray } from '../../src/database/arrays.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { openSql } from '../support/sql.ts'

test('Postgres reads every array back unchanged', async () => {
  await using sql = openSql(await cloneDatabase())
  const character = fc.constantFrom(...`a"\\,{}' \nN🚀`, 'NULL')
  const text = fc.string({ unit: character, maxLength: 8 })
  const lists = fc.sample(fc.array(fc.option(text), { maxLength: 6 }), 500)
  for (const list of lists) {
    const [row] = await sql`select to_json(${toArray(list)}::text[])::text as json`
    expect(JSON.parse(row?.['json'])).toEqual(list)
  }
})
