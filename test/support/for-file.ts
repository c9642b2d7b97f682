import { afterAll, beforeAll } from 'bun:test'

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
