import { expect } from 'bun:test'
import type { Queryable } from '../../src/db/sql.ts'
import { findWrongCounts } from './wrong-counts.ts'

/** Expects event_counts to be what counting the project's events gives. */
export async function expectExactCounts(sql: Queryable, projectId: string): Promise<void> {
  expect(await findWrongCounts(sql, projectId)).toEqual([])
}
