import { expect, test } from 'bun:test'
import { HOSTILE, measureAnswers } from '../../support/answer-memory.ts'

test('400 hostile receivers take hardly more memory than 400 honest ones', async () => {
  const honest = await measureAnswers(['honest'], 400)
  const hostile = await measureAnswers(HOSTILE, 400)
  expect(hostile.peak / honest.peak).toBeLessThan(3)
})
