import { isInvisible } from '../../src/base/display-text.ts'
import { hasNothingToFind, MAX_WORDS, splitWords } from '../../src/base/text-search.ts'
import { splitEmoji, type TextParts } from '../../src/log/channels/icon.ts'
import {
  addEvent,
  addUser,
  createModel,
  eraseUser,
  expectSame,
  listSeqs,
  resolveUser,
  toCurrent,
  toMs,
  type EventFields,
  type Model,
} from './model.ts'
import type { RawAnswer } from '../support/clients/raw-http.ts'
import type { ApiRequest } from './requests.ts'
import { isRaw, meaning, spell } from './spelling.ts'
import type { Lane } from './world.ts'

/** Sends requests to a lane's project, and compares every answer with a model of it. */
export interface Tester {
  model: Model
  /** Returns the request, sometimes changed so that a read asks for existing data. */
  aim(request: ApiRequest): ApiRequest
  /** Compares the answer to a valid request with the contract; throws if they differ. */
  expectAccepted(request: ApiRequest, answer: RawAnswer): Promise<void>
  /** Reads all stored data page by page; throws unless it is complete and in order. */
  expectAll(): Promise<void>
}

const STATUS: Record<string, number> = { createEvent: 201, logEvent: 201, sendText: 201 }
const EMOJI = /^\p{RGI_Emoji}$/v

export function createTester(lane: Lane): Tester {
  const model = createModel()

  async function expectRead(target: string, data: unknown): Promise<void> {
    expectSame(`what ${target} reads back`, (await lane.get(target)).body.data, data)
  }

  const accepted: Record<string, (request: ApiRequest, answer: RawAnswer) => Promise<void> | void> =
    {
      createEvent: (request, { body }) => expectEvent(fromCreate(request.json ?? {}), body.data),
      logEvent: (request, { body }) => expectEvent(fromLog(request.json ?? {}), body.data),
      sendText: (request, { body }) => expectEvent(fromText(request), body.data),
      async identify({ json = {} }, { body }) {
        const { user_id: userId, properties, aliases } = json as any
        addUser(model, { userId, properties, aliases }, body.data)
        const user = model.users.get(userId)
        const { data } = (await lane.get(`/v1/users?userId=${encodeURIComponent(userId)}`)).body
        expectSame('the user', [data.userId, data.properties], [userId, user?.properties])
        expectSame('the aliases', [...data.aliases].sort(), [...(user?.aliases ?? [])].sort())
      },
      getUser: (request, { body }) => {
        expectSame('the user', body.data.userId, resolveUser(model, toUserId(request)))
      },
      findUser: (request, answer) => accepted['getUser']?.(request, answer),
      getEvent({ params }, { body }) {
        const event = model.events.get(params['id'] ?? '')
        expectSame('the event', body.data, event && toCurrent(model, event))
      },
      listEvents({ query }, { body }) {
        const { items, nextCursor } = body.data
        const seqs: number[] = items.map(({ seq }: { seq: number }) => seq)
        const expected = listSeqs(model, query)
        const limit = Number(query['limit'] ?? 50)
        if (query['text'] === undefined) {
          // A page ends early when its events are large, or when its time is over.
          const isShort = nextCursor !== null && seqs.length < limit
          const page = expected.slice(0, isShort ? seqs.length : limit)
          expectSame(`the places of ${JSON.stringify(query)}`, seqs, page)
          expectSame('whether there is more', nextCursor !== null, expected.length > page.length)
        } else if (!seqs.every(seq => expected.includes(seq)))
          throw new Error('An item was not requested')
        for (const item of items) expectKept(item)
      },
      listChannels({ query }, { body }) {
        const expected = Math.min(model.channels.size, Number(query['limit'] ?? 50))
        expectSame('the number of channels', body.data.items.length, expected)
      },
      getMe: (_, { body }) => expectSame('the key', body.data.key.id, lane.project.keyId),
    }

  async function expectEvent(fields: EventFields, data: Record<string, any>): Promise<void> {
    addEvent(model, fields, data)
    await expectRead(`/v1/events/${data['id']}`, data)
  }

  function expectKept(item: Record<string, any>): void {
    const event = model.events.get(item['id'])
    expectSame('an item', item, event && toCurrent(model, event))
  }

  /** Returns the status that the answer to a valid request must have. */
  function toStatus(request: ApiRequest): number {
    const key = toKey(request)
    const used = key === undefined ? undefined : model.keys.get(key)
    if (request.id === 'getEvent') return model.events.has(request.params['id'] ?? '') ? 200 : 404
    if (request.id === 'getUser' || request.id === 'findUser') {
      return model.users.has(resolveUser(model, toUserId(request))) ? 200 : 404
    }
    // A schema cannot say that a field requires another one.
    const { channel, thread: listed } = request.query
    if (request.id === 'listThreads' && (channel === undefined) !== (listed === undefined))
      return 400
    const { state, thread } = request.id === 'sendText' ? request.query : (request.json ?? {})
    if (STATUS[request.id] === 201 && state !== undefined && thread === undefined) return 400
    // A schema cannot know what a terminal prints.
    if (request.id === 'sendText' && isInvisible(fromText(request).title)) return 400
    // A request that is not valid is refused before its key is looked up.
    if (used && used.print !== toPrint(request)) return 422
    // A schema cannot count words, nor fold them.
    const text = request.id === 'listEvents' ? request.query['text'] : undefined
    const words = text === undefined ? [] : splitWords(text)
    const isRefused = words.length > MAX_WORDS || words.some(hasNothingToFind)
    return isRefused ? 400 : (STATUS[request.id] ?? 200)
  }

  return {
    model,
    aim(request) {
      const event = [...model.events.values()].at(request.choice % (model.events.size || 1))
      if (!event || request.choice % 4 === 0) return request
      const { id, channelId, channelName, tags, source, seq, timestamp, state, thread, threadSeq } =
        event.data
      if (request.id === 'getEvent') {
        return { ...request, params: { id }, target: `/v1/events/${id}` }
      }
      if (request.id !== 'listEvents') return request
      const query = { ...request.query }
      if (query['channel']) query['channel'] = request.choice % 2 === 0 ? channelId : channelName
      if (query['tag'] && tags.length > 0) query['tag'] = tags[0]
      if (query['source']) query['source'] = source
      if (query['state'] && state) query['state'] = state
      if (query['thread'] && thread) query['thread'] = thread
      if (query['threadSeq'] && threadSeq) query['threadSeq'] = String(threadSeq)
      if (query['after']) query['after'] = String(seq - 1)
      if (query['from']) query['from'] = timestamp
      if (query['to']) query['to'] = timestamp
      // With as many items as there are, a page has no next one.
      if (query['limit'])
        query['limit'] = String(Math.max(1, Math.min(100, listSeqs(model, query).length)))
      return { ...request, query, target: `/v1/events?${new URLSearchParams(query)}` }
    },
    async expectAccepted(request, answer) {
      if (request.id === 'eraseUser' || request.id === 'eraseFoundUser') {
        const events = eraseUser(model, toUserId(request))
        // A long erasure goes on after its response. A repeated request waits for the end.
        while (answer.status === 202) answer = await lane.send(request)
        expectSame('the status', answer.status, events === undefined ? 404 : 200)
        if (events !== undefined) expectSame('the events', answer.body.data.events, events)
        return
      }
      const status = toStatus(request)
      if (answer.status !== status) {
        throw new Error(`Answered ${answer.status}, not ${status}: ${answer.text.slice(0, 1_000)}`)
      }
      if (status >= 400) return
      const key = toKey(request)
      const used = key === undefined ? undefined : model.keys.get(key)
      expectSame(
        'whether it is a replay',
        answer.headers.has('x-idempotent-replay'),
        used !== undefined,
      )
      if (used) {
        if (used.text !== undefined) expectSame('the replay', answer.text, used.text)
        return
      }
      await accepted[request.id]?.(request, answer)
      if (key !== undefined) model.keys.set(key, { print: toPrint(request), text: answer.text })
    },
    async expectAll() {
      const seqs: number[] = []
      for (const after of ['', '&after=0']) {
        for (let cursor: string | null = ''; cursor !== null;) {
          const { body } = await lane.get(
            `/v1/events?limit=100${cursor ? `&cursor=${cursor}` : after}`,
          )
          for (const item of body.data.items) {
            expectKept(item)
            seqs.push(item.seq)
          }
          cursor = body.data.nextCursor
        }
      }
      const forward = Array.from({ length: model.seq }, (_, n) => n + 1)
      expectSame('the log, backward and forward', seqs, [...forward.toReversed(), ...forward])
    },
  }
}

function toKey({ method, headers }: ApiRequest): string | undefined {
  const raw = method === 'POST' ? new Map(headers).get('Idempotency-Key')?.trim() : undefined
  return raw === undefined ? undefined : (/^"(.*)"$/.exec(raw)?.[1] ?? raw)
}

function toPrint({ method, target, json, body }: ApiRequest): string {
  return `${method} ${target} ${json ? meaning(json) : body}`
}

function fromCreate(json: Record<string, any>): EventFields {
  return {
    channelName: json['channelName'],
    title: json['title'].trim(),
    description: json['description'] ?? null,
    icon: toIcon(json['icon']),
    tags: [...new Set<string>(json['tags'] ?? [])],
    metadata: json['metadata'] ?? {},
    ref: json['userId'] ?? json['user_id'] ?? null,
    notify: json['notify'] ?? true,
    source: json['source'] ?? 'api',
    timestampMs: json['timestamp'] === undefined ? null : toMs(json['timestamp']),
    ...(json['level'] !== undefined && { level: json['level'] }),
    ...(json['url'] !== undefined && { url: json['url'] }),
    ...(json['thread'] !== undefined && { thread: json['thread'] }),
    ...(json['state'] !== undefined && { state: json['state'] }),
  }
}

function fromLog(json: Record<string, any>): EventFields {
  const tags = Object.entries<unknown>(json['tags'] ?? {})
    .filter(([, value]) => typeof value !== 'object' || isRaw(value))
    .map(([key, value]) => `${key}:${typeof value === 'string' ? value : spell(value)}`)
    .filter(tag => [...tag].length <= 50)
  return {
    ...fromCreate({
      ...{ ...json, title: json['event'], tags: [...new Set(tags.slice(0, 20))] },
      ...{ level: undefined, url: undefined, thread: undefined, state: undefined },
    }),
    channelName: json['channel'],
    metadata: json['tags'] ?? {},
    ref: json['user_id'] ?? null,
    notify: json['notify'] ?? false,
    source: 'api',
  }
}

/** The first line is the title, an emoji before it the icon, and the rest the description. */
function fromText({ params, query, body = '' }: ApiRequest): EventFields {
  const plain = readAsTerminal(body)
  const split = splitEmoji(plain.trimStart())
  const { icon, rest: text }: TextParts = split.rest.trim() === '' ? { rest: plain } : split
  const [title = '', ...rest] = text.trimStart().split(/\r?\n/)
  const description = rest.join('\n').trim()
  return fromCreate({
    ...query,
    channelName: params['name'],
    title,
    ...(description !== '' && { description }),
    ...(icon !== undefined && { icon }),
  })
}

/** Returns the characters that a terminal prints, by the rules of ECMA-48. */
function readAsTerminal(text: string): string {
  let printed = ''
  let at = 0
  const skip = (first: string, last: string) => {
    while (at < text.length && text.charAt(at) >= first && text.charAt(at) <= last) at++
  }
  while (at < text.length) {
    const unit = text.charAt(at++)
    if (unit === '\u009b' || (unit === '\u001b' && text.charAt(at) === '[')) {
      if (unit === '\u001b') at++
      skip('0', '?')
      skip(' ', '/')
      if (/[@-~]/.test(text.charAt(at))) at++
    } else if (unit === '\u001b' && /[\]PX^_]/.test(text.charAt(at))) {
      while (at < text.length && !'\n\u0007\u001b\u009c'.includes(text.charAt(at))) at++
      if (text.startsWith('\u001b\\', at)) at += 2
      else if ('\u0007\u009c'.includes(text.charAt(at))) at++
    } else if (unit === '\u001b') {
      skip(' ', '/')
      if (/[0-~]/.test(text.charAt(at))) at++
    } else printed += unit
  }
  return printed
}

function toIcon(icon: string | undefined): string | null {
  if (icon === undefined) return null
  const selected = `${icon}\uFE0F`
  return EMOJI.test(selected) ? selected : icon
}

/** The user that the path or the query of a request names. */
function toUserId({ params, query }: ApiRequest): string {
  return params['userId'] ?? query['userId'] ?? ''
}
