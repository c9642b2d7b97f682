// Programs that use generated clients, as their documentation says. Each one gets the URL of /v1,
// an API key, the URL of /api, a management token and the id of a project. It prints one line.

const ARGUMENTS = `
declare const process: { argv: string[] }
const [, , url = '', key = '', api = '', token = '', projectId = ''] = process.argv
`

/** The program of each generator, by the name of its file. */
export const STORIES: Readonly<Record<string, string>> = {
  'types.ts': `import type { components, paths } from './types-v1'
import type { paths as management } from './types-management'
${ARGUMENTS}
type Create = paths['/v1/events']['post']
type Project = management['/api/projects/{projectId}']['get']

async function call<Body>(address: string, secret: string, body?: object): Promise<Body> {
  const response = await fetch(address, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: 'Bearer ' + secret, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  if (!response.ok) throw new Error(await response.text())
  return (await response.json()) as Body
}

const event: components['schemas']['EventInput'] = { channelName: 'payments', title: 'Typed', icon: '💰' }
const created = await call<Create['responses'][201]['content']['application/json']>(url + '/v1/events', key, event)
const project = await call<Project['responses'][200]['content']['application/json']>(api + '/api/projects/' + projectId, token)
console.log(created.data.title, project.data.name)
`,
  'sdk.ts': `import { createClient } from './sdk-v1/client'
import { createEvent, identify, listEvents } from './sdk-v1'
import { createClient as createManagementClient } from './sdk-management/client'
import { createWebhook, deleteWebhook, searchEvents } from './sdk-management'
${ARGUMENTS}
const client = createClient({ baseUrl: url, auth: () => key, throwOnError: true })
const body = { channelName: 'payments', title: 'By the SDK', metadata: { amount: 42 }, userId: 'ada' }
const created = await createEvent({ client, body, throwOnError: true })
const listed = await listEvents({ client, query: { limit: 10, channel: 'payments' }, throwOnError: true })
const user = await identify({ client, body: { user_id: 'ada', aliases: ['ada@example.com'] }, throwOnError: true })

const management = createManagementClient({ baseUrl: api, auth: () => token, throwOnError: true })
const path = { projectId }
const webhook = await createWebhook({
  client: management,
  path,
  body: { url: 'https://93.184.216.34/hook', name: 'Generated' },
  throwOnError: true,
})
const { id } = webhook.data.data
await deleteWebhook({ client: management, path: { projectId, webhookId: id }, throwOnError: true })
const found = await searchEvents({ client: management, path, query: { q: 'sdk' }, throwOnError: true })
const isListed = listed.data.data.items.some(one => one.id === created.data.data.id)
console.log(isListed, user.data.data.aliases.created.join(), found.data.data.items.length > 0)
`,
  'zod.ts': `import { CreateEventBody, CreateEventResponse, ListEventsResponse } from './zod-v1'
import { GetProjectResponse, ListWebhooksResponse } from './zod-management'
${ARGUMENTS}
async function call(address: string, secret: string, body?: object): Promise<unknown> {
  const response = await fetch(address, {
    method: body ? 'POST' : 'GET',
    headers: { authorization: 'Bearer ' + secret, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  return response.json()
}

const event = CreateEventBody.parse({ channelName: 'payments', title: 'Checked by zod', tags: ['a'] })
const created = CreateEventResponse.parse(await call(url + '/v1/events', key, event))
const listed = ListEventsResponse.parse(await call(url + '/v1/events?limit=5', key))
const project = GetProjectResponse.parse(await call(api + '/api/projects/' + projectId, token))
ListWebhooksResponse.parse(await call(api + '/api/projects/' + projectId + '/webhooks', token))
const isBlank = CreateEventBody.safeParse({ channelName: ' ', title: 't' }).success
console.log(created.data.title, listed.data.items.length > 0, project.data.name, isBlank)
`,
}
