import { afterAll, beforeEach, expect, mock, test } from 'bun:test'
import * as real from 'node:fs'
import * as realPromises from 'node:fs/promises'
import { join } from 'node:path'
import { makeFolder } from '../support/scratch.ts'
import { cloneDatabase } from '../support/servers/postgres.ts'

/** The calls that reached the disk, in order. */
const calls: string[] = []
const { fsyncSync, linkSync, renameSync } = real
const { open, link, rename } = realPromises
const folder = makeFolder(0o700)
const toName = (path: string) =>
  path
    .replace(folder, 'FOLDER')
    .replace(/app-secret\.[0-9a-f]{12}|tidings\.backup\.[0-9a-f]{12}\.part/, 'DRAFT')
/** Linux alone tells the path of an open file. */
const recordSync = (fd: number) =>
  process.platform === 'linux' &&
  calls.push(`fsync ${toName(real.readlinkSync(`/proc/self/fd/${fd}`))}`)

mock.module('node:fs', () => ({
  ...real,
  fsyncSync(fd: number) {
    recordSync(fd)
    fsyncSync(fd)
  },
  linkSync(from: string, to: string) {
    calls.push(`link ${toName(from)} ${toName(to)}`)
    linkSync(from, to)
  },
  renameSync(from: string, to: string) {
    calls.push(`rename ${toName(from)} ${toName(to)}`)
    renameSync(from, to)
  },
}))
mock.module('node:fs/promises', () => ({
  ...realPromises,
  async open(...args: Parameters<typeof open>) {
    const handle = await open(...args)
    const sync = handle.sync.bind(handle)
    handle.sync = () => {
      recordSync(handle.fd)
      return sync()
    }
    return handle
  },
  link(from: string, to: string) {
    calls.push(`link ${toName(from)} ${toName(to)}`)
    return link(from, to)
  },
  rename(from: string, to: string) {
    calls.push(`rename ${toName(from)} ${toName(to)}`)
    return rename(from, to)
  },
}))
const { backUp } = await import('../support/worlds/backup.ts')
const { loadSecrets, replaceSecretFile } =
  await import('../../src/database/secrets/open-secrets.ts')
const { appendErasedNames } = await import('../../src/log/identities/erased-file.ts')

beforeEach(() => void (calls.length = 0))
afterAll(() => mock.restore())

const onLinux = (expected: string[]) =>
  expected.filter(call => process.platform === 'linux' || !call.startsWith('fsync'))

test('a new APP_SECRET and its folders are on disk before it is used', () => {
  const dataDir = join(folder, 'parent/data')
  loadSecrets({ appSecret: undefined, oldAppSecrets: [], dataDir }, true)
  expect(calls).toEqual(
    onLinux([
      ...['fsync FOLDER/parent', 'fsync FOLDER', 'fsync FOLDER/parent/data/DRAFT'],
      ...[
        'link FOLDER/parent/data/DRAFT FOLDER/parent/data/app-secret',
        'fsync FOLDER/parent/data',
      ],
    ]),
  )
  expect(real.readdirSync(dataDir)).toEqual(['app-secret'])
})

test('a replaced APP_SECRET is on disk, with its name, when the rotation continues', () => {
  replaceSecretFile(join(folder, 'app-secret'), [Buffer.alloc(32, 1)])
  expect(calls).toEqual(
    onLinux([...['fsync FOLDER/DRAFT', 'rename FOLDER/DRAFT FOLDER/app-secret', 'fsync FOLDER']]),
  )
})

test('a new list of erased users is private and on disk, with its name', async () => {
  const file = join(folder, 'lists/erased-users')
  const id = crypto.randomUUID()
  const name = {
    ...{ erasureKeyId: id, erasedUserId: id, projectId: id, isUserId: true },
    ...{ hash: '0'.repeat(64), erasedAt: new Date(), keyId: null },
  }
  const before = process.umask(0)
  await appendErasedNames(file, [name]).finally(() => process.umask(before))
  expect(real.statSync(file).mode & 0o777).toBe(0o600)
  const appended = 'fsync FOLDER/lists/erased-users'
  const created = ['fsync FOLDER', appended, 'fsync FOLDER/lists']
  expect(calls).toEqual(onLinux(created))
  await appendErasedNames(file, [name])
  expect(calls).toEqual(onLinux([...created, appended]))
})

test('a backup is on disk, with its name, before it is reported', async () => {
  const url = await cloneDatabase()
  const file = join(folder, 'tidings.backup')
  // The first test with a database starts the cluster.
  calls.length = 0
  await backUp(url, file)
  const named = 'FOLDER/DRAFT FOLDER/tidings.backup'
  expect(calls).toEqual(onLinux(['fsync FOLDER/DRAFT', `link ${named}`, 'fsync FOLDER']))
  calls.length = 0
  await backUp(url, file, { isForced: true })
  expect(calls).toEqual(onLinux(['fsync FOLDER/DRAFT', `rename ${named}`, 'fsync FOLDER']))
})
