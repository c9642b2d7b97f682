import { Type, type TSchema } from '@sinclair/typebox'
import { Elysia } from 'elysia'
import {
  requireScope,
  type KeyCall,
  type KeyGuard,
  type KeyGuardOptions,
} from '../../access/keys/guard.ts'
import type { Scope } from '../../access/keys/schema.ts'
import { VERSION } from '../../base/version.ts'
import { fail, newCall, respond } from '../../http/call.ts'
import { toWords } from '../../http/failures.ts'
import { toJsonSchema } from '../../http/json-schema.ts'
import { createValidator, type SchemaOf } from '../../http/validation.ts'
import { Question } from '../../log/events/question-schema.ts'
import { readQuestion, type QuestionParts } from '../../log/events/question.ts'
import { EventInput } from '../../log/events/schema.ts'
import { createEventWriter, type EventParts } from '../../log/events/v1-routes.ts'
import { AnswerQuery } from '../questions/schema.ts'
import { createAnswerReader, type AnswerParts } from '../questions/v1-routes.ts'

/** Clients give up a call of a tool after a minute. */
const WAIT_S = 50
const { thread: _thread, state: _state, ...fields } = EventInput.properties
const Asking = Type.Object({ ...fields, ...Type.Required(Question).properties })
const Waiting = Type.Object({
  id: Type.String({ minLength: 1, description: 'The id of the event that asks the question.' }),
  ...AnswerQuery.properties,
})

type Parts = Pick<EventParts, 'appender' | 'quotas'> &
  Pick<KeyGuardOptions, 'refusals' | 'toAddress'> &
  QuestionParts &
  AnswerParts

/** The tools of agents, by their names. */
type Tools = Record<string, Tool>

interface Tool {
  scope: Scope
  description: string
  inputSchema: object
  run(call: KeyCall, given: unknown, signal: AbortSignal): Promise<Response>
}

/** The route of the Model Context Protocol. It keeps no sessions: each request is complete. */
export function mcpRoutes({ guard, ...parts }: Parts & { guard: KeyGuard }) {
  const tools = listTools(parts)
  return new Elysia({ name: 'mcp' }).use(guard).post(
    '/mcp',
    async ({ call, request, body }) => {
      // Few servers are asked for it, and it takes memory and time.
      const { createMcpHandler, ProtocolError, Server } =
        await import('@modelcontextprotocol/server')
      const handler = createMcpHandler(
        () => {
          const server = new Server(
            { name: 'tidings', title: 'Tidings', version: VERSION },
            { capabilities: { tools: {} } },
          )
          server.setRequestHandler('tools/list', () => ({
            tools: Object.entries(tools).map(([name, { description, inputSchema }]) => ({
              ...{ name, description },
              inputSchema: inputSchema as { type: 'object' },
            })),
          }))
          server.setRequestHandler('tools/call', async ({ params }) => {
            const tool = Object.hasOwn(tools, params.name) && tools[params.name]
            if (!tool) throw new ProtocolError(-32602, `There is no tool ${params.name}`)
            const response = await answerOwn(call, own => {
              requireScope(parts, request, call.key, tool.scope)
              return tool.run(own, params.arguments ?? {}, request.signal)
            })
            const text = await response.text()
            return { content: [{ type: 'text', text }], isError: !response.ok }
          })
          return server
        },
        // A subscription would keep its request open. Nothing here changes.
        { maxSubscriptions: 0 },
      )
      const response = await handler.fetch(request, { parsedBody: body })
      const type = response.headers.get('content-type')
      return respond(call, {
        status: response.status,
        body: await response.text(),
        headers: { ...(type && { 'Content-Type': type }) },
      })
    },
    {
      scope: 'any',
      body: Type.Object({}),
      detail: { operationId: 'callTool', summary: 'Call a tool of the Model Context Protocol' },
    },
  )
}

function listTools(parts: Parts): Tools {
  const create = createEventWriter(parts)
  const readAnswer = createAnswerReader(parts)
  return {
    send: toTool({
      scope: 'events:write',
      description: 'Sends an event to a channel. Members see it at once, and can be notified.',
      input: EventInput,
      run: (call, event) => create(call, event),
    }),
    ask: toTool({
      scope: 'events:write',
      description:
        'Asks the members a question: the title of an event, with up to four actions as answers. Returns the event at once. Call wait_for_answer with its id.',
      input: Asking,
      run: (call, event) => create(call, event, undefined, readQuestion(parts, event)),
    }),
    wait_for_answer: toTool({
      scope: 'events:read',
      description:
        'Returns the answer to a question as soon as a member gives it. The action is its id. Call it again while the state is waiting.',
      input: Waiting,
      run: (call, { id, wait = WAIT_S }, signal) => readAnswer(call, signal, { id, wait }),
    }),
  }
}

function toTool<Input>({
  input,
  run,
  ...tool
}: Pick<Tool, 'scope' | 'description'> & {
  input: SchemaOf<Input>
  run(call: KeyCall, given: Input, signal: AbortSignal): Promise<Response>
}): Tool {
  const { $id: _, ...schema } = input as TSchema
  const { parse } = createValidator(input)
  return {
    ...tool,
    inputSchema: toJsonSchema(schema) as object,
    run: async (call, given, signal) => run(call, parse(given), signal),
  }
}

/** Returns the response to a call of a tool. Within its request, it is a call of its own. */
async function answerOwn(
  call: KeyCall,
  run: (own: KeyCall) => Promise<Response>,
): Promise<Response> {
  const { key, method, route, release } = call
  call.release = undefined
  const own: KeyCall = {
    ...newCall(method),
    ...{ route, release, guard: 'key', key, claim: undefined },
    toFailureBody: ({ body }) => toWords(body),
  }
  try {
    return await run(own)
  } catch (error) {
    return fail(own, error)
  }
}
