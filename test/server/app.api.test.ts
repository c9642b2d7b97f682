import { expect, test } from 'bun:test'
import { toSite } from '../../src/http/site.ts'
import { toSecurityTxt } from '../../src/server/app.ts'
import { boot } from '../support/servers/server.ts'

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

test('the file is served if a contact is configured', async () => {
  await using server = await boot({ securityContacts: ['mailto:security@example.com'] })
  const response = await fetch(server.url + PATH)
  expect(response.status).toBe(200)
  expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
  expect(response.headers.get('content-security-policy')).toContain("default-src 'none'")
  const lines = (await response.text()).split('\n')
  expect(lines[0]).toBe('Contact: mailto:security@example.com')
  const expires = Date.parse(lines[1]?.replace('Expires: ', '') ?? '') - Date.now()
  expect(expires).toBeWithin(179 * 86_400_000, 180 * 86_400_000)
  expect((await fetch(server.url + PATH, { method: 'HEAD' })).status).toBe(200)
})

test('/source leads strangers to the source code of this server, which has no file without a contact', async () => {
  await using server = await boot({ sourceUrl: 'https://git.example.com/tidings' })
  const { status, headers } = await fetch(`${server.url}/source`, { redirect: 'manual' })
  expect(status).toBe(302)
  expect(headers.get('location')).toBe('https://git.example.com/tidings')
  expect((await fetch(server.url + PATH)).status).toBe(404)
})
