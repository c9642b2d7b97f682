import { expect } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { openFeed } from '../clients/feed.ts'
import { startProgram, type Program, type ProgramOptions } from '../servers/process.ts'
import { startPushService } from '../servers/push-service.ts'
import { startReceiver } from '../servers/receiver.ts'
import { createBrowser, PASSWORD } from './browser.ts'
import { createRequests } from './project.ts'

/** Uses the whole product from outside, on a new database in `folder`. */
export async function runBlackBox(
  folder: string,
  options: Omit<ProgramOptions, 'env'>,
  meanwhile: (program: Program) => Promise<void>,
): Promise<void> {
  await using receiver = await startReceiver()
  await using service = await startPushService()
  const authority = join(folder, 'authority.pem')
  writeFileSync(authority, service.ca, { mode: 0o644 })
  await using program = await startProgram({
    ...options,
    env: {
      DATA_DIR: join(folder, 'data'),
      // Receivers and the push service run on this machine, with certificates of an unknown
      // authority.
      EGRESS_ALLOW_CIDRS: '127.0.0.0/8',
      PUSH_HOSTS: service.host,
      VAPID_SUBJECT: 'mailto:ops@example.com',
      NODE_EXTRA_CA_CERTS: authority,
    },
  })

  const ada = createBrowser(program.url)
  const claimed = await ada.post('/api/setup', {
    token: program.setupToken,
    name: 'Ada',
    email: 'ada@example.com',
    password: PASSWORD,
  })
  expect(claimed.status).toBe(201)
  const { projects } = claimed.body.data.organizations[0]
  const path = `/api/projects/${projects[0].id}`
  const { key } = (await ada.post(`${path}/keys`, { name: 'story' })).body.data
  const { post } = createRequests(program.url, key)

  const identified = await post('/v1/identify', { user_id: 'ada', aliases: ['ada@example.com'] })
  expect(identified.status).toBe(200)

  const cookie = [...ada.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  const feed = await openFeed(program.url, { cookie })
  expect((await feed.subscribe(projects[0].id)).type).toBe('subscribed')
  const { secret } = (await ada.post(`${path}/webhooks`, { url: `${receiver.url}/hook` })).body.data
  const browser = service.subscribe()
  const { endpoint, keys } = browser
  expect((await ada.post('/api/push/subscriptions', { endpoint, keys })).status).toBe(200)

  const event = {
    channelName: 'payments',
    title: 'New payment',
    icon: '💰',
    userId: 'ada@example.com',
  }
  const posted = await post('/v1/events', event)
  expect(posted.status).toBe(201)
  const stored = posted.body.data

  expect(await feed.next()).toMatchObject({ type: 'event', seq: stored.seq, event: stored })
  await receiver.until(1, '/hook')
  const { body, headers } = receiver.received[0]!
  expect(new Webhook(secret).verify(body, headers)).toMatchObject({
    type: 'event.created',
    data: stored,
  })
  const [push] = await service.until(browser, 1)
  expect(push?.notification).toMatchObject({ title: '💰 New payment' })
  expect(push?.notification.navigate).toEndWith(`/e/${stored.id}`)
  expect(service.problems).toEqual([])

  await meanwhile(program)
  program.signal('SIGTERM')
  expect((await feed.closed).code).toBe(1001)
  expect(await program.exited).toEqual({ code: 0, signal: null })
}
