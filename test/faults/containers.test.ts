import { expect, setDefaultTimeout, test } from 'bun:test'
import { hasContainers } from '../support/containers.ts'
import { isNamed } from '../support/servers/embedded.ts'
import { runContainers } from './containers.ts'
import { newSeed } from './random.ts'
import { scaled } from '../support/until.ts'

setDefaultTimeout(scaled(300_000))

const seed = newSeed()

test.if(hasContainers && isNamed)(
  'programs that start, end and are killed in two containers with one data folder lose nothing',
  async () => {
    const { figures, problems } = await runContainers({ seed, times: 8 })
    if (problems.length > 0) console.error({ seed, ...figures })
    expect(problems.slice(0, 10)).toEqual([])
  },
)
