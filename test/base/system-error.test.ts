import { expect, test } from 'bun:test'
import { constants } from 'node:os'
import { toListenError } from '../../src/base/listener.ts'
import { explainOutput, explainSystemError } from '../../src/base/system-error.ts'

const FOLDER = '/srv/tidings'

function newError(code: string, more: object): Error {
  return Object.assign(new Error(`${code}: it failed`), { code, ...more })
}

/** Matches two sentences: the cause, and the remedy. */
const SENTENCES = /^[A-Z/].*[^.]\. [A-Z][^.].*\.$/

test.each([
  ['EACCES', 'open', 'Run the command as the user of the server'],
  ['EROFS', 'mkdir', 'Mount the disk writable'],
  ['ENOSPC', 'copyfile', 'Free some space'],
  ['EIO', 'read', 'Check the disk'],
  ['ESTALE', 'open', 'Mount the disk again'],
  ['ENOENT', 'open', 'Create the folder, or correct the path'],
  ['ENOTDIR', 'mkdir', 'Choose another path'],
  ['EISDIR', 'open', 'Choose another path'],
  ['ELOOP', 'stat', 'Correct them'],
  ['ENAMETOOLONG', 'mkdir', 'Choose a shorter one'],
  ['ENOTSUP', 'link', 'Choose a folder on a local disk'],
  ['EBUSY', 'rename', 'Stop it, and try again'],
  ['ENOMEM', 'spawn', 'raise the limits'],
  ['ENOEXEC', 'spawn', 'Install Tidings for this machine'],
  ['EMFILE', 'open', 'Raise the limit: `ulimit -n'],
] as const)('%s of %s says what to do', (code, syscall, remedy) => {
  expect(constants.errno).toHaveProperty(code)
  const text = explainSystemError(newError(code, { syscall, path: FOLDER }))
  expect(text).toMatch(SENTENCES)
  expect(text).toContain(remedy)
  if (!code.endsWith('FILE')) expect(text).toContain(FOLDER)
})

test('the error of a copy names the place that is full', () => {
  const error = newError('ENOSPC', { syscall: 'copyfile', path: '/usr/a', dest: `${FOLDER}/a` })
  expect(explainSystemError(error)).toContain(`The disk of ${FOLDER}/a is full`)
})

test('a write without a path, a process without descriptors, and a socket', () => {
  expect(explainSystemError(newError('ENOSPC', { syscall: 'write' }))).toMatch(SENTENCES)
  expect(explainSystemError(newError('EMFILE', {}))).toMatch(SENTENCES)
  // The database and the listener have sentences of their own.
  const refused = newError('ECONNREFUSED', { syscall: 'connect', address: '127.0.0.1' })
  expect(explainSystemError(refused)).toBeUndefined()
  expect(explainSystemError(new Error('another'))).toBeUndefined()
})

test.each([
  ['FATAL:  insufficient file descriptors available to start server process', 'Raise the limit'],
  ['could not write to file "x": No space left on device', 'Free some space'],
  ['could not open file "x": Read-only file system', 'Mount the disk writable'],
  ['could not open file "x": Permission denied', 'Run the command as the user of the server'],
  ['could not map anonymous shared memory: Cannot allocate memory', 'raise the limits'],
  ['could not fork process: Resource temporarily unavailable', 'raise the limits'],
])('Postgres ends with %p', (output, remedy) => {
  expect(explainOutput(output, FOLDER)).toContain(remedy)
})

test.each([
  ['EADDRINUSE', 'set PORT to another port'],
  ['EACCES', 'Set PORT to 1024 or higher'],
  ['EADDRNOTAVAIL', 'Set HOST to one of its addresses'],
  ['ENOTSUP', 'Set HOST to one of its addresses'],
  ['ENOBUFS', 'cannot be opened on this machine (ENOBUFS)'],
  ['EMFILE', 'Raise the limit'],
])('listening fails with %s', (code, remedy) => {
  const error = toListenError(newError(code, { syscall: 'listen' }), { host: 'a', port: 80 })
  expect((error as Error).message).toMatch(SENTENCES)
  expect((error as Error).message).toContain(remedy)
})
