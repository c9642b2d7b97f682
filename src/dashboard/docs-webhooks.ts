import { sample } from './docs-operation.ts'
import { markup, type Markup } from './html.ts'

const VERIFY = `import { Webhook } from 'standardwebhooks'

const webhook = new Webhook(process.env.WEBHOOK_SECRET)

export async function receive(request) {
  const body = await request.text()
  try {
    const { type, data } = webhook.verify(body, Object.fromEntries(request.headers))
    console.log(type, data.title)
    return new Response(null, { status: 204 })
  } catch {
    return new Response(null, { status: 401 })
  }
}`

const HEADERS = `webhook-id: msg_01kadz5p6vf2w8y3m4n5q6r7s8
webhook-timestamp: 1795257600
webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=`

/** How to receive events, and to know that they are ours. */
export function webhooks(): Markup {
  return markup`<div class="pair">
<div class="prose">
<p>A project posts its events to the addresses that its admins have added, as
<a href="https://www.standardwebhooks.com">Standard Webhooks</a> has it: the body is
<code>{"type":"event.created","timestamp":…,"data":…}</code>, and <code>data</code> is the event.</p>
<p>Check the signature before you believe a request, over the body as it arrived, before it is parsed. The secret
is shown when the webhook is made. While it is being replaced both secrets sign, and a request that one of them
verifies is genuine.</p>
<p>Answer with any 2xx, within 15 seconds; everything else is tried again for three days, and <code>410</code>
disables the webhook. A request may come again with the same <code>webhook-id</code>, and requests may arrive out of
order.</p>
</div>
<div class="samples">${sample('Headers of a request', HEADERS)}${sample('Verify it', VERIFY)}</div>
</div>`
}
