import { expect, test } from 'bun:test'
import { startProgram } from '../../support/servers/process.ts'
import { boot } from '../../support/servers/server.ts'
import { scaled, until } from '../../support/until.ts'
import { newTenant } from '../../support/worlds/tenant.ts'

/** The rules fire at the 6th, 16th, … event, so that some fire next to each kill. */
const SIZES = Array.from({ length: 12 }, (_, n) => 10 * n + 5)

test(
  'attention §7 each rule fires once, at its event, with three processes that are killed',
  async () => {
    // It takes the requests. The others make the steps.
    await using server = await boot({}, { kinds: [] })
    const { sql } = server
    const start = () => startProgram({ env: { DATABASE_URL: server.databaseUrl } })
    const programs = await Promise.all([start(), start(), start()])
    try {
      const { account, path, projectId, send } = await newTenant(server)
      await account.post(`${path}/channels`, { name: 'ops' })
      for (const moreThan of SIZES)
        await account.post(`${path}/rules`, {
          ...{ name: `R${moreThan}`, channel: 'ops', q: 'tag:payment' },
          ...{ moreThan, withinSeconds: 3_600 },
        })
      for (let n = 1; n <= 120; n++) {
        const event = { channelName: 'shop', title: `Payment ${n}`, tags: ['payment'] }
        // A project is busy (503) while a killed process has its log.
        await until(() => send(event, { 'Idempotency-Key': `${n}` }).then(Boolean, () => false))
        if (n % 30 !== 0) continue
        const nth = (n / 30) % 3
        await programs[nth]!.kill('SIGKILL')
        programs[nth] = await start()
      }
      // A lease of a killed process ends after 30 s.
      await until(async () => {
        const late = await sql`
          select from rules r join event_logs l using (project_id) where r.seq < l.last_seq limit 1
        `
        return late.count === 0
      }, 60_000)
      const fired = await sql<{ thread: string; n: number }[]>`
        select thread, count(*)::int as n
        from events where project_id = ${projectId} and starts_with(thread, 'rule:rul_') group by thread
      `
      expect(fired.map(({ n }) => n)).toEqual(SIZES.map(() => 1))
      const wrong = await sql`
        select r.more_than, r.state
        from rules r
        where (r.state ->> 'firingMs')::float8 is distinct from (
          select floor(extract(epoch from e.created_at) * 1000)::float8
          from events e
          where e.project_id = r.project_id and e.thread is null
          order by e.seq offset r.more_than limit 1
        )
      `
      expect([...wrong]).toEqual([])
    } finally {
      for (const program of programs) await program.kill('SIGKILL')
    }
  },
  scaled(150_000),
)
