import { expect, test } from 'bun:test'
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { withSharedServer } from '../../support/servers/server.ts'
import { newProject } from '../../support/worlds/project.ts'
import { hasTool } from '../../support/tools.ts'

const server = withSharedServer()
const run = promisify(execFile)

test.skipIf(!hasTool('curl'))("curl publishes as ntfy's documentation shows", async () => {
  const { key, get } = await newProject(server)
  const url = `${server.url}/ntfy`
  const json =
    '{"topic":"ops","message":"Disk space is low","title":"Low 💾","tags":["warning","cd"],"priority":4}'
  const cases: [words: string[], event: object][] = [
    [['-d', 'Backup successful 😀', `${url}/ops`], { title: 'Backup successful 😀', icon: null }],
    [
      ['-H', 'Title: Zürich', '-H', 'ta:skull,x', '-H', 'p:urgent', '-d', 'Attack!', `${url}/ops`],
      { title: 'Zürich', description: 'Attack!', icon: '💀', tags: ['x'], level: 'critical' },
    ],
    [
      ['-T', '-', '-H', 'Filename: a.txt', '-H', 'X-Tags: =?UTF-8?B?w7w=?=', `${url}/ops`],
      { title: 'Done', tags: ['ü'], metadata: { filename: 'a.txt' } },
    ],
    [['-d', json, url], { title: 'Low 💾', icon: '⚠️', tags: ['cd'], level: 'high' }],
    [[`${url}/ops/trigger?m=Hi`], { title: 'Hi' }],
  ]
  for (const [nth, [words, expected]] of cases.entries()) {
    const auth = nth % 2 === 0 ? ['-u', `:${key}`] : ['-H', `Authorization: Bearer ${key}`]
    const sent = run('curl', ['-s', ...auth, ...words])
    sent.child.stdin?.end('Done\n')
    const { id } = JSON.parse((await sent).stdout)
    expect((await get(`/v1/events/${id}`)).body.data).toMatchObject({
      channelName: 'ops',
      ...expected,
    })
  }
})

test.skipIf(!hasTool('apprise'))('apprise publishes, and tells what was refused', async () => {
  const { key, get } = await newProject(server)
  const { host } = new URL(server.url)
  const notify = (query: string) =>
    run('apprise', [
      '-v',
      '-t',
      'Bäckup',
      '-b',
      'The disk\nis full.',
      `ntfy://key:${key}@${host}/ops${query}`,
    ])
  await notify('?priority=max&tags=warning,db1&click=https://example.com/db1')
  const { items } = (await get('/v1/events')).body.data
  expect(items).toMatchObject([
    {
      channelName: 'ops',
      title: 'Bäckup',
      description: 'The disk\nis full.',
      icon: '⚠️',
      tags: ['db1'],
      level: 'critical',
      url: 'https://example.com/db1',
    },
  ])
  const refused = await notify('?delay=1h').catch((error: unknown) => error)
  expect((refused as { stdout: string }).stdout).toContain('delay: Is not supported here')
  expect((await get('/v1/events')).body.data.items).toHaveLength(1)
})
