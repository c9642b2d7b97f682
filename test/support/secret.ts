import { toAppKey, createSecrets, type Secrets } from '../../src/database/secrets/secrets.ts'

/** The APP_SECRET of all test servers, so that those on one database agree. */
export const APP_SECRET = Buffer.alloc(32, 'test')

/** The secrets of those servers. */
export function testSecrets(): Secrets {
  const keys = [toAppKey(APP_SECRET)]
  return createSecrets(() => keys)
}
