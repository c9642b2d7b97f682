import { CodeBlock } from './code-block.tsx'
import { t } from '../locales/translate.tsx'

const PLACEHOLDER = 'YOUR_API_KEY'

/** The shortest command that sends an event. Its double quotes work in every shell. */
export function FirstEventCommand({ apiKey = PLACEHOLDER }: { apiKey?: string }) {
  const lines = [
    `curl ${location.origin}/v1/channels/hello`,
    `  -H "Authorization: Bearer ${apiKey}"`,
    '  -d "🎉 It works"',
  ]
  return <CodeBlock label={t('common.inTerminal')} text={lines.join(' \\\n')} />
}
