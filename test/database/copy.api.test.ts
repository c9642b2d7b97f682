import { afterAll, beforeAll, expect, test } from 'bun:test'
import { copyIn, copyOut } from '../../src/database/copy.ts'
import type { Sql } from '../../src/database/sql.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'
import { openSql } from '../support/sql.ts'

let sql: Sql
beforeAll(async () => {
  sql = openSql(await cloneDatabase())
  await sql`create table note (id int primary key, text text)`
})
afterAll(() => sql.end({ timeout: 1 }))

async function* toRows(...rows: string[]): AsyncGenerator<Buffer> {
  for (const row of rows) yield Buffer.from(`${row}\n`)
}

test('a connection stays usable after a COPY whose last rows filled its buffer', async () => {
  // For some of these counts, an idle reader gets the last row and the end of the COPY together.
  for (let rows = 1; rows <= 40; rows++) {
    const after = await sql.begin(async tx => {
      let taken = 0
      for await (const row of copyOut(
        tx,
        `copy (select repeat('x', 5000) from generate_series(1, ${rows})) to stdout`,
      )) {
        expect(row.length).toBe(5001)
        taken++
      }
      expect(taken).toBe(rows)
      return [...(await tx`select 1 as one`)]
    })
    expect(after).toEqual([{ one: 1 }])
  }
})

test('a COPY that Postgres refuses fails with its own error, and the connection stays usable', async () => {
  const feed = (...rows: string[]) =>
    sql.begin(tx => copyIn(tx, 'copy note (id, text) from stdin', toRows(...rows)))
  await feed('1\tone', '2\ttwo')
  await feed()
  await expect(feed('2\tagain')).rejects.toThrow('duplicate key')
  await expect(feed('x\tnone')).rejects.toThrow('invalid input syntax')
  await expect(sql.begin(tx => copyIn(tx, 'copy absent from stdin', toRows()))).rejects.toThrow(
    '"absent" does not exist',
  )
  async function* fails(): AsyncGenerator<Buffer> {
    yield Buffer.from('3\tthree\n')
    throw new Error('The source has failed')
  }
  const failing = sql.begin(tx => copyIn(tx, 'copy note (id, text) from stdin', fails()))
  await expect(failing).rejects.toThrow('The source has failed')
  expect([...(await sql`select id from note order by id`)]).toEqual([{ id: 1 }, { id: 2 }])
})

test('a COPY that fails in its first packet rejects its reader', async () => {
  for (let tries = 0; tries < 20; tries++) {
    const reading = sql.begin(async tx => {
      const text = `copy (select 1 / (${tries % 4} - g) from generate_series(0, 9) g) to stdout`
      for await (const row of copyOut(tx, text)) expect(row).not.toBeEmpty()
    })
    await expect(reading).rejects.toThrow('division by zero')
  }
})
