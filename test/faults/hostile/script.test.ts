import { expect, test } from 'bun:test'
import { newMember, newOrganization } from '../../support/worlds/signed-in-account.ts'
import { sendRaw, toRequest } from '../../support/clients/raw-http.ts'
import { startReceiver } from '../../support/servers/receiver.ts'
import { withServer } from '../../support/servers/server.ts'

// Text that tries to be executed, or to become a header.

const server = withServer({ egressAllowCidrs: ['127.0.0.0/8'] })

const MARKUP = '<script>alert(1)</script>'
const HEADER = 'x\r\nSet-Cookie: tidings=evil\r\n\r\n<script>'
const own = () => `Host: localhost:${server.server.port}`

test.each([
  ['a path', () => [`GET /${MARKUP} HTTP/1.1`, own()]],
  ['a path, encoded', () => [`GET /${encodeURIComponent(MARKUP)} HTTP/1.1`, own()]],
  ['a path of a file', () => [`GET /assets/${MARKUP}.html HTTP/1.1`, own()]],
  ['a path of /v1', () => [`GET /v1/${MARKUP} HTTP/1.1`, own()]],
  ['a path of /api', () => [`GET /api/${MARKUP} HTTP/1.1`, own()]],
  ['a query', () => [`GET /api/me?q=${MARKUP} HTTP/1.1`, own()]],
  ['a host', () => ['GET / HTTP/1.1', 'Host: evil.example']],
  ['an invalid host', () => ['GET / HTTP/1.1', `Host: ${MARKUP}`]],
  ['an origin', () => ['DELETE /api/session HTTP/1.1', own(), `Origin: http://${MARKUP}`]],
  ['a method', () => ['DELETE /docs HTTP/1.1', own()]],
  ['an upgrade', () => ['GET /api/feed HTTP/1.1', own(), 'Upgrade: websocket']],
])('an error is never a page: %s', async (_, toLines) => {
  const [first = '', ...lines] = toLines()
  const answer = await sendRaw(server.url, toRequest(first, [...lines, 'Connection: close']))
  // The platform's own refusals have neither text nor type.
  if (answer === undefined || (answer.text === '' && !answer.headers.has('content-type'))) return
  expect(answer.status).toBeGreaterThanOrEqual(400)
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff')
  expect(answer.headers.has('set-cookie')).toBe(false)
})

test('stored text never becomes a header, neither of answers nor of webhooks', async () => {
  await using receiver = await startReceiver()
  const organization = await newOrganization(server)
  const admin = await newMember(server, organization, 'admin')
  const path = `/api/projects/${organization.project.id}`
  const made = await admin.post(`${path}/webhooks`, {
    url: `${receiver.url}/hook?a=%0d%0aX-Evil:1`,
  })
  expect(made.status).toBe(201)
  const { key } = (await admin.post(`${path}/keys`, { name: MARKUP })).body.data
  const body = {
    channelName: MARKUP,
    title: HEADER,
    tags: [HEADER],
    source: HEADER,
    userId: HEADER,
  }
  const posted = await fetch(`${server.url}/v1/events`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'content-type': 'application/json',
      'idempotency-key': MARKUP,
      'x-request-id': MARKUP,
    },
    body: JSON.stringify(body),
  })
  expect(posted.status).toBe(201)
  expect(posted.headers.get('x-request-id')).toMatch(/^[0-9a-f-]{36}$/)
  expect(posted.headers.has('set-cookie')).toBe(false)
  await receiver.until(1, '/hook')
  const [received] = receiver.received
  expect(Object.keys(received!.headers).filter(name => /evil|cookie/.test(name))).toEqual([])
  expect(received!.path).toBe('/hook?a=%0d%0aX-Evil:1')
  expect(JSON.parse(received!.body).data).toMatchObject({ title: HEADER.trim(), source: HEADER })
})
