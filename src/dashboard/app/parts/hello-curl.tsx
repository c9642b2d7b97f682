import { Code } from './code.tsx'

const PLACEHOLDER = 'YOUR_API_KEY'

/** The shortest way to an event. Double quotes, because every shell takes them. */
export function HelloCurl({ apiKey = PLACEHOLDER }: { apiKey?: string }) {
  const lines = [
    `curl ${location.origin}/v1/channels/hello`,
    `  -H "Authorization: Bearer ${apiKey}"`,
    '  -d "🎉 It works"',
  ]
  return <Code label="In a terminal" text={lines.join(' \\\n')} />
}
