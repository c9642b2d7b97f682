import { CodeBlock } from './code-block.tsx'

const PLACEHOLDER = 'YOUR_API_KEY'

/** The shortest command that sends an event. Its double quotes work in every shell. */
export function FirstEventCommand({ apiKey = PLACEHOLDER }: { apiKey?: string }) {
  const lines = [
    `curl ${location.origin}/v1/channels/hello`,
    `  -H "Authorization: Bearer ${apiKey}"`,
    '  -d "🎉 It works"',
  ]
  return <CodeBlock label="In a terminal" text={lines.join(' \\\n')} />
}
