import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'bun:test'
import { withSharedServer } from '../../support/servers/server.ts'
import { makeFolder } from '../../support/scratch.ts'
import { hasTool } from '../../support/tools.ts'
import { until } from '../../support/until.ts'
import { newTenant } from '../../support/worlds/tenant.ts'

const server = withSharedServer()
const run = promisify(execFile)

/** Returns a port that was free a moment ago. */
async function findPort(): Promise<number> {
  const probe = createServer().listen(0, '127.0.0.1')
  await once(probe, 'listening')
  const { port } = probe.address() as { port: number }
  probe.close()
  await once(probe, 'close')
  return port
}

test.skipIf(!hasTool('prometheus-alertmanager') || !hasTool('amtool'))(
  'Alertmanager fires, groups, resolves and repeats, and each alert is one thread',
  async () => {
    const { account, path, v1 } = await newTenant(server)
    const made = await account.post(`${path}/hooks`, {
      ...{ name: 'Alertmanager', preset: 'alertmanager', channel: 'ops' },
    })
    const { id, url } = made.body.data
    const folder = makeFolder()
    const config = join(folder, 'alertmanager.yml')
    const route =
      '{ receiver: tidings, group_by: [alertname], group_wait: 1s, group_interval: 1s, repeat_interval: 2s }'
    writeFileSync(
      config,
      `route: ${route}\nreceivers:\n  - name: tidings\n    webhook_configs:\n      - url: ${url}\n        send_resolved: true\n`,
    )
    const address = `127.0.0.1:${await findPort()}`
    const program = spawn(
      'prometheus-alertmanager',
      [
        ...[`--config.file=${config}`, `--storage.path=${folder}`, '--cluster.listen-address='],
        `--web.listen-address=${address}`,
      ],
      { stdio: 'ignore' },
    )
    try {
      const alert = async (instance: string, ...more: string[]) =>
        run('amtool', [
          ...[`--alertmanager.url=http://${address}`, 'alert', 'add', 'DiskFull'],
          ...[
            `instance=${instance}`,
            'severity=critical',
            `--annotation=summary=${instance} is full`,
          ],
          ...more,
        ])
      const isReady = async () => {
        try {
          return (await fetch(`http://${address}/-/ready`)).ok
        } catch {
          return false
        }
      }
      await until(isReady)
      const list = async () => {
        const { body } = await v1.get('/v1/events?threads=all')
        return body.data.items.map(({ title, state, level }: Record<string, string>) =>
          [title, state, level].join(' '),
        )
      }
      const requests = async () =>
        (await account.get(`${path}/hooks/${id}/requests`)).body.data.items
      await alert('db1')
      await until(async () => (await list()).length === 1)
      // A group of both states: the first alert ends while the second one begins.
      await alert('db1', `--end=${new Date(Date.now() - 1_000).toISOString()}`)
      await alert('db2')
      await until(async () => (await list()).length === 3)
      expect((await list()).toSorted()).toEqual([
        'db1 is full firing critical',
        'db1 is full resolved critical',
        'db2 is full firing critical',
      ])
      // It repeats the second one for as long as it fires.
      const { length } = await requests()
      await until(async () => (await requests()).length > length + 1)
      expect((await list()).length).toBe(3)
      const outcomes = (await requests()).map(({ outcome }: { outcome: string }) => outcome)
      expect(outcomes).toContain('Changed nothing: it was known')
    } finally {
      program.kill()
      await once(program, 'exit')
    }
  },
)
