import { expect, test } from 'bun:test'
import { startFleet } from './fleet.ts'
import { createRandom } from './random.ts'
import { startSoakLoad } from './soak-load.ts'
import { assessTrend, type LifeCurve } from './soak-trends.ts'
import { until } from '../support/until.ts'

test('the load of a soak detects lost, duplicated and misplaced events from a few numbers', async () => {
  const fleet = await startFleet({ servers: 1, projects: 2 })
  const { sql, projects, databaseUrl } = fleet
  const load = startSoakLoad({
    servers: fleet.urls,
    projects,
    shares: { second: 0.3 },
    clients: 4,
    seed: 1,
  })
  try {
    load.setRate(500)
    await until(() => (load.outcomes.get('201') ?? 0) >= 200)
    await load.stop()
    const whole = await load.check(databaseUrl)
    expect(whole.problems).toEqual([])
    expect(Number(whole.figures['acknowledged'])).toBeGreaterThanOrEqual(200)
    expect(whole.figures['stored']).toBe(whole.figures['acknowledged']!)

    await sql`
      update events set seq = seq + 1
      where (project_id, seq) in (select project_id, max(seq) from events group by project_id limit 1)
    `
    const moved = await load.check(databaseUrl)
    expect(moved.problems).toEqual([
      expect.stringMatching(/^client \d: the seqs of its events differ from the answers$/),
    ])
    await sql`
      update events set metadata = '{"client":0,"n":2}' where metadata::jsonb = '{"client":0,"n":1}'
    `
    const twice = await load.check(databaseUrl)
    expect(twice.problems).toContainEqual(expect.stringContaining('are LOST'))
    expect(twice.problems).toContain('client 0: 1 were made twice')
    expect(twice.figures).toMatchObject({ lost: 1, 'made twice': 1 })
  } finally {
    await load.stop()
    await fleet.close()
  }
})

/** Returns two lives of `minutes`, with noise of ±5. */
function newLives(minutes: number, toValue: (minute: number, life: number) => number): LifeCurve[] {
  const random = createRandom(7)
  return [0, 1].map(life => ({
    name: String(life),
    points: Array.from({ length: minutes * 12 }, (_, nth) => {
      const minute = nth / 12
      return [minute, toValue(minute, life) + 10 * random.next() - 5] as const
    }),
  }))
}

test.each([
  ['what stays', 15, () => 100, 'yes'],
  [
    'a figure that is larger while warming up',
    15,
    (minute: number) => (minute < 1 ? 300 : 100),
    'yes',
  ],
  ['a figure that grows by one a minute', 15, (minute: number) => 100 + minute, 'no'],
  [
    'a figure that is larger in a later life',
    15,
    (_: number, life: number) => 100 + 30 * life,
    'no',
  ],
  ['a figure seen for two minutes', 2, () => 100, 'too short to say'],
] as const)('%s, in lives of %d minutes', (_, minutes, toValue, isFlat) => {
  expect(assessTrend(newLives(minutes, toValue), 1).isFlat).toBe(isFlat)
})
