import { afterAll, beforeAll } from 'bun:test'
import { isClusterShared, outlivingFile } from './servers/postgres.ts'

/**
 * Opens something for the tests of a file, before their own hooks, and disposes of it after them.
 * The result is empty until then.
 */
export function forFile<Opened extends AsyncDisposable>(open: () => Promise<Opened>): Opened {
  const opened = {} as Opened
  beforeAll(async () => {
    Object.defineProperties(opened, Object.getOwnPropertyDescriptors(await open()))
  })
  afterAll(() => opened[Symbol.asyncDispose]())
  return opened
}

const shared = new Map<unknown, Promise<AsyncDisposable>>()

/**
 * Opens something once for all files of this process whose tests read and write nothing beyond
 * their own organizations. It saves each file a start. It ends with the process.
 */
export function forProcess<Opened extends AsyncDisposable>(open: () => Promise<Opened>): Opened {
  return forFile(async () => {
    if (!(await isClusterShared())) return open()
    const opening = shared.get(open) ?? outlivingFile(open)
    shared.set(open, opening)
    const opened = (await opening) as Opened
    return { ...opened, async [Symbol.asyncDispose]() {} }
  })
}
