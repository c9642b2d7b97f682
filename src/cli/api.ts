import { createClient, type Client } from '../client/client.ts'
import { UsageError } from './command.ts'

/** The client of the server that TIDINGS_URL names, with the key in TIDINGS_API_KEY. */
export function createApiClient(): Client {
  const { TIDINGS_URL: baseUrl = 'http://localhost:3000', TIDINGS_API_KEY: apiKey } = process.env
  if (!apiKey) {
    throw new UsageError('Set TIDINGS_API_KEY to an API key: `tidings keys create` makes one.')
  }
  if (!URL.canParse(baseUrl)) {
    throw new UsageError(`TIDINGS_URL must be a URL like http://localhost:3000: it is ${baseUrl}`)
  }
  return createClient({ baseUrl, apiKey })
}

/** The JSON object in an option's text. */
export function parseObject(option: string, text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return value as Record<string, unknown> // Checked just now.
    }
  } catch {
    // Not JSON at all: the same answer.
  }
  throw new UsageError(`--${option} must be a JSON object, like '{"plan": "pro"}'`)
}
