import { expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { findInaccessibleFolder } from '../../src/database/embedded/folders.ts'
import { makeFolder } from '../support/scratch.ts'
import { spawnProgram } from '../support/servers/process.ts'
import { until } from '../support/until.ts'
import { createBrowser } from '../support/worlds/browser.ts'

test('demo plays events in an installation of its own, also where only its user may enter TMPDIR, and leaves nothing', async () => {
  const TMPDIR = makeFolder(0o700)
  // For root, Postgres runs as another user.
  const parent = findInaccessibleFolder(TMPDIR) === undefined ? TMPDIR : '/tmp'
  const listFolders = () =>
    readdirSync(parent).filter(name => name.startsWith('tidings-demo-') && !before.includes(name))
  const before = readdirSync(parent)
  // The settings of another installation, which the demo must not use.
  const others = {
    DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nothing',
    DATA_DIR: '/nowhere',
    HTTP_PROXY: 'http://127.0.0.1:1',
  }
  const env = { ...others, TMPDIR, PORT: '0' }
  await using demo = spawnProgram({ args: ['demo', '--speed', '10000'], env })
  await until(() => demo.output().includes('Nothing is kept.'))
  expect(listFolders()).toHaveLength(1)

  const url = demo.find(/is running: (\S+)\/p\//) ?? ''
  expect(url).not.toEndWith(':3000')
  const browser = createBrowser(url)
  const password = demo.find(/Password +(\S+)/)
  const signedIn = await browser.signIn('ada@example.com', password)
  const [organization] = signedIn.body.data.organizations
  const sample = organization.projects.find(({ isSample }: { isSample: boolean }) => isSample)
  // It opens on the feed that fills.
  expect(demo.find(/is running: \S+\/p\/(\S+)/)).toBe(sample.id)
  const readHead = async () => (await browser.get(`/api/projects/${sample.id}`)).body.data.head
  const head = await readHead()
  await until(async () => (await readHead()) > head)

  demo.signal('SIGINT')
  expect(await demo.exited).toEqual({ code: 0, signal: null })
  expect(listFolders()).toEqual([])
})
