import { expect, test } from 'bun:test'
import { findMain } from '../support/servers/process.ts'
import { hasTool } from '../support/tools.ts'
import { scaled } from '../support/until.ts'
import { newSeed } from './random.ts'
import { runUpgrade } from './upgrade.ts'

test.skipIf(!hasTool('nginx'))(
  'a rolling upgrade of three servers behind the nginx of the documentation shows clients no error',
  async () => {
    const seed = newSeed()
    // The programs are equal, so that going back shows nothing.
    const load = { between: 25, clients: 4, pauseMs: 100, goesBack: false }
    const { figures, problems } = await runUpgrade({ seed, old: findMain(), ...load })
    if (problems.length > 0) console.error({ seed, ...figures })
    expect(problems.slice(0, 10)).toEqual([])
    expect(figures).toMatchObject({ 'migrations applied': 1 })
  },
  scaled(180_000),
)
