import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  newMember,
  newOrganization,
  type SignedInAccount,
} from '../../support/worlds/signed-in-account.ts'
import { startReceiver, type Receiver } from '../../support/servers/receiver.ts'
import { boot, type Booted } from '../../support/servers/server.ts'

// Attacks on the server's network through the addresses that it sends to.
//
// Covered elsewhere: addresses in any spelling, names that change, redirects, proxies (api/egress,
// unit/egress, api/webhook-urls), answers that never end, bombs and floods of hints (api/egress,
// api/egress-many).

/** A public address of this machine. */
const OWN = '8.8.4.4'

let server: Booted
let canary: Receiver
let admin: SignedInAccount
let all: string
beforeAll(async () => {
  canary = await startReceiver()
  server = await boot(
    {},
    {
      egress: {
        resolve: async host =>
          host.endsWith('public.test')
            ? [{ address: host.startsWith('own') ? OWN : '8.8.8.8', family: 4 }]
            : host === 'inner.test'
              ? [{ address: '10.1.2.3', family: 4 }]
              : [],
        listOwnAddresses: () => [OWN, '2606:4700::9'],
      },
    },
  )
  const organization = await newOrganization(server)
  admin = await newMember(server, organization, 'admin')
  all = `/api/projects/${organization.project.id}/webhooks`
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  expect(canary.connections).toBe(0)
  await canary[Symbol.asyncDispose]()
})

test('a webhook changes its preset only if the preset accepts its address', async () => {
  const made = await admin.post(all, { url: 'https://public.test/hook' })
  const one = `${all}/${made.body.data.id}`
  const inside = `http://127.0.0.1:${canary.port}`
  for (const change of [
    { preset: 'telegram' },
    { preset: 'ntfy', url: 'https://public.test/' },
    { preset: 'ntfy', url: 'https://public.test/a/..%2f..%2fb' },
    { preset: 'ntfy', url: `${inside}/topic` },
    { preset: 'slack', url: `${inside}/hook` },
    { preset: 'telegram', url: `${inside}/bot1/sendMessage?chat_id=1` },
    { url: `https://public.test@127.0.0.1:${canary.port}/` },
    { url: `https://public.test:1@127.0.0.1:${canary.port}/` },
    { url: `http://127.0.0.1:${canary.port}\\@public.test/` },
    { url: `http:127.0.0.1:${canary.port}` },
    { url: `http:\\\\127.0.0.1:${canary.port}` },
    { url: `HTTP://127.0.0.1:${canary.port}` },
    { url: `\thttp://127.0.0.1:${canary.port}` },
    { url: `http://127.0.0.1%00.public.test:${canary.port}/` },
    { url: `gopher://127.0.0.1:${canary.port}/` },
    { url: 'unix:///var/run/docker.sock' },
    { url: 'data:text/plain,x' },
  ]) {
    const answer = await admin.patch(one, change)
    expect([change, answer.status]).toEqual([change, 400])
  }
  expect((await admin.get(one)).body.data).toMatchObject({
    url: 'https://public.test/hook',
    preset: 'standard',
  })
})

test.each([
  ...[
    `http://${OWN}:8080/`,
    'http://0x8080404/',
    'http://[::ffff:8.8.4.4]/',
    'http://[2606:4700::9]/',
  ],
  ...['http://[64:ff9b::8.8.4.4]/', 'http://[2002:808:404::1]/'],
])('a webhook to the public address of the server itself is refused: %s', async url => {
  const answer = await admin.post(all, { url })
  expect([answer.status, answer.body.details?.[0].path]).toEqual([400, ['url']])
})

test('a name of the private network looks like one that does not exist, in every response', async () => {
  const texts = await Promise.all(
    ['inner.test', 'other.test'].map(async host => {
      const made = await admin.post(all, { url: `https://${host}/hook`, name: 'x' })
      expect(made.status).toBe(201)
      const path = `${all}/${made.body.data.id}`
      const tested = await admin.post(`${path}/test`)
      const attempts = await admin.get(`${path}/attempts`)
      const shown = await admin.get(path)
      await admin.delete(path)
      const text = [tested, attempts, shown].map(answer => answer.text).join()
      expect(text).not.toContain('10.1.2.3')
      return text
        .replaceAll(host, 'HOST')
        .replace(/"[a-z]{3}_\w+"/g, '"ID"')
        .replace(/"(\d{4}-\d\d-\d\dT[^"]+|[0-9a-f]{8}-[^"]+)"/g, '"AT"')
        .replace(/"(latencyMs|bytes)":\d+/g, '"N":0')
    }),
  )
  expect(texts[0]).toContain('"dns"')
  expect(texts[0]).toBe(texts[1]!)
})
