import type { BrowserContext, Page } from 'playwright-core'

interface Intercepted {
  method: string
  url: URL
  /** The parsed body; null if there is none. */
  body: unknown
}

interface RawAnswer {
  status: number
  headers: Record<string, string>
  body: string
}

/** An answer, or none: the connection is refused. */
export type Reply = RawAnswer | 'refused'

type Answer = (request: Intercepted) => Reply | Promise<Reply>

/** The newest answer of each context. */
const answers = new WeakMap<BrowserContext, Answer>()
const attached = new WeakMap<Page, Promise<void>>()

/**
 * Answers the requests to `/api` of a context's pages, in place of an earlier `answer`. Routes of
 * Playwright would stop each request, and turn off the cache of scripts: half of a page's load.
 */
export async function interceptApi(context: BrowserContext, answer: Answer): Promise<void> {
  const isFirst = !answers.has(context)
  answers.set(context, answer)
  if (!isFirst) return
  // A page that is closed at once cannot be attached to.
  context.on('page', page => void attach(page).catch(() => {}))
  // The first requests of a page that is not attached to yet reach the server.
  const newPage = context.newPage.bind(context)
  context.newPage = async () => {
    const page = await newPage()
    await attach(page)
    return page
  }
  await Promise.all(context.pages().map(attach))
}

function attach(page: Page): Promise<void> {
  const attaching = attached.get(page) ?? start(page)
  attached.set(page, attaching)
  return attaching
}

async function start(page: Page): Promise<void> {
  const context = page.context()
  const session = await context.newCDPSession(page)
  session.on('Fetch.requestPaused', async ({ requestId, request }) => {
    const { method, url, postDataEntries = [] } = request
    const text = Buffer.concat(postDataEntries.map(one => Buffer.from(one.bytes ?? '', 'base64')))
    const body = text.length > 0 ? JSON.parse(text.toString()) : null
    const answer = await answers.get(context)!({ method, url: new URL(url), body })
    const answered =
      answer === 'refused'
        ? session.send('Fetch.failRequest', { requestId, errorReason: 'ConnectionRefused' })
        : session.send('Fetch.fulfillRequest', {
            requestId,
            responseCode: answer.status,
            responseHeaders: Object.entries(answer.headers).map(([name, value]) => ({
              name,
              value,
            })),
            body: Buffer.from(answer.body).toString('base64'),
          })
    // A page that was closed or left waits no longer.
    answered.catch(() => {})
  })
  await session.send('Fetch.enable', { patterns: [{ urlPattern: '*/api/*' }] })
}
