import { expect, test } from 'bun:test'
import { newSeed } from './random.ts'
import { runSeq } from './seq.ts'
import { scaled } from '../support/until.ts'

test(
  '§4 seq is dense and in commit order: no reader of three servers sees n+1 before n',
  async () => {
    const seed = newSeed()
    const { figures, problems } = await runSeq({ seed, events: 5_000 })
    if (problems.length > 0) console.error({ seed, ...figures })
    expect(problems.slice(0, 10)).toEqual([])
  },
  scaled(120_000),
)
