import { expect, test } from 'bun:test'
import { hashPassword } from '../../../src/access/sign-in/credentials.ts'

test('reliability §6 a crowd of one link or account delays the password of no other', async () => {
  const ended: string[] = []
  const hash = (key: string) =>
    hashPassword('seven green bicycles', key).then(
      () => ended.push(key),
      () => ended.push(`${key} refused`),
    )
  // More than may wait for one key.
  await Promise.all([...Array.from({ length: 40 }, () => hash('crowd')), hash('other')])
  expect(ended).toContain('crowd refused')
  const hashed = ended.filter(key => !key.endsWith(' refused'))
  expect(hashed).toContain('other')
  expect(hashed.indexOf('other')).toBeLessThan(hashed.length / 2)
})
