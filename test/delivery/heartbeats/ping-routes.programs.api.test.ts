import { expect, test } from 'bun:test'
import { execFile } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ROOT } from '../../support/docs.ts'
import { makeFolder } from '../../support/scratch.ts'
import { withSharedServer } from '../../support/servers/server.ts'
import { hasTool } from '../../support/tools.ts'
import { createKey } from '../../support/worlds/keys.ts'
import { newTenant } from '../../support/worlds/tenant.ts'

const server = withSharedServer()
const run = promisify(execFile)

/** Creates a heartbeat, and returns its address and what it has been told, the oldest first. */
async function openHeartbeat() {
  const tenant = await newTenant(server, 'member')
  const { account, path } = tenant
  await account.post(`${path}/channels`, { name: 'ops' })
  const fields = { name: 'Backup', channel: 'ops', periodSeconds: 3600, graceSeconds: 600 }
  const { id, url } = (await account.post(`${path}/heartbeats`, fields)).body.data
  const listPings = async (): Promise<any[]> =>
    (await account.get(`${path}/heartbeats/${id}/pings`)).body.data.items.toReversed()
  return { ...tenant, url, listPings }
}

test.skipIf(!hasTool('curl'))('the script of the documentation reports with curl', async () => {
  const { url, listPings } = await openHeartbeat()
  const page = readFileSync(join(ROOT, 'docs/heartbeats.md'), 'utf8')
  const script = /```sh\n(#!\/bin\/sh[\s\S]+?)```/.exec(page)?.[1] ?? ''
  const words = script
    .replace(/^url=.*$/m, `url=${url}`)
    .replace('/usr/local/bin/backup', "sh -c 'seq 40000; echo no space left; exit 3'")
  await run('sh', ['-c', words])
  const pings = await listPings()
  expect(pings).toMatchObject([
    { kind: 'start', method: 'GET' },
    { kind: 'fail', method: 'POST', exitCode: 3 },
  ])
})

test.skipIf(!hasTool('borgmatic'))('borgmatic reports to a heartbeat and to ntfy', async () => {
  const { url, listPings, projectId, v1 } = await openHeartbeat()
  const { token } = await createKey(server.sql, { projectId, name: 'borgmatic' })
  const home = makeFolder()
  mkdirSync(join(home, 'files'))
  writeFileSync(join(home, 'files', 'a'), 'a')
  const env = { ...process.env, HOME: home, BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK: 'yes' }
  const borgmatic = (hooks: string, ...words: string[]) => {
    const file = join(home, 'config.yaml')
    writeFileSync(
      file,
      `location:
  source_directories: [${JSON.stringify(join(home, 'files'))}]
  repositories: [${JSON.stringify(join(home, 'repository'))}]
hooks:
  healthchecks: {ping_url: "${url}"}
  ntfy: {topic: ops, server: "${server.url.replace('//', `//key:${token}@`)}/ntfy"}
${hooks}`,
    )
    // With a file it needs no syslog.
    const log = ['--log-file', join(home, 'log')]
    return run('borgmatic', ['-c', file, ...log, ...words], { env })
  }
  await borgmatic('', 'init', '-e', 'none')
  await borgmatic('', 'create')
  const failed = await borgmatic("  before_backup: ['echo no disk; false']\n", 'create').catch(
    (error: unknown) => error,
  )
  expect(failed).toBeInstanceOf(Error)
  const pings = await listPings()
  const kinds = pings.map(({ kind }) => kind)
  expect(kinds).toEqual(['start', 'success', 'start', 'fail'])
  expect(pings[1].tookMs).toBeNumber()
  expect(pings[3].body).toContain('no disk')
  const { items } = (await v1.get('/v1/events?threads=all')).body.data
  const told = items.map(({ source, title }: any) => `${source}: ${title}`)
  expect(told).toContain('heartbeat: Backup failed')
  expect(told.some((one: string) => one.startsWith('ntfy: '))).toBe(true)
})
