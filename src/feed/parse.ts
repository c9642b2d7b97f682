import { createValidator, Invalid } from '../http/validation.ts'
import { parseId } from '../ids.ts'
import { Subscribe, Unsubscribe } from './schema.ts'

type Message = Subscribe | { type: 'unsubscribe'; project: string }

const validators = {
  subscribe: createValidator(Subscribe),
  unsubscribe: createValidator(Unsubscribe),
}

/** What a client says, and the uuid of the project that it names; or, for people, why it says nothing. */
export function parseMessage(
  text: string,
): { message: Message; projectId: string | undefined } | { problem: string } {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { problem: 'Send JSON' }
  }
  const type = typeof value === 'object' && value !== null && 'type' in value && value.type
  if (type !== 'subscribe' && type !== 'unsubscribe') {
    return { problem: 'type: Must be subscribe or unsubscribe' }
  }
  try {
    const message = validators[type].parse(value)
    return { message, projectId: parseId('prj', message.project) }
  } catch (error) {
    if (!(error instanceof Invalid)) throw error
    const [first] = error.details
    return { problem: `${first?.path.join('.')}: ${first?.message}` }
  }
}
