import { expect, test } from 'bun:test'
import { toSite } from '../../src/http/site.ts'
import { toSecurityTxt } from '../../src/server/app.ts'
import { boot, withSharedServer } from '../support/servers/server.ts'

const shared = withSharedServer()

const PATH = '/.well-known/security.txt'

test('RFC 9116 the file names contacts, expiry and its own address', () => {
  const site = toSite('https://tidings.example.com')
  const contacts = ['mailto:security@example.com', 'https://example.com/report']
  expect(toSecurityTxt(site, contacts, Date.parse('2026-11-22T13:00:00Z')))
    .toBe(`Contact: mailto:security@example.com
Contact: https://example.com/report
Expires: 2027-05-21T00:00:00.000Z
Canonical: https://tidings.example.com/.well-known/security.txt
`)
})

test('the file is served if a contact is configured, and /source leads to the source code', async () => {
  const sourceUrl = 'https://git.example.com/tidings'
  const securityContacts = ['mailto:security@example.com']
  await using server = await boot({ securityContacts, sourceUrl })
  const response = await fetch(server.url + PATH)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
  expect(await response.text()).toStartWith('Contact: mailto:security@example.com\nExpires: ')
  expect((await fetch(server.url + PATH, { method: 'HEAD' })).status).toBe(200)
  const { status, headers } = await fetch(`${server.url}/source`, { redirect: 'manual' })
  expect([status, headers.get('location')]).toEqual([302, sourceUrl])
})

test('there is no file without a contact', async () =>
  expect((await fetch(shared.url + PATH)).status).toBe(404))
