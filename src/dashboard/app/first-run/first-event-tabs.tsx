import { useState } from 'preact/hooks'
import { CodeBlock } from '../components/code-block.tsx'
import { Tabs } from '../components/tabs.tsx'
import { readStored, store } from '../storage.ts'
import { SNIPPETS } from './snippets.ts'

/** The first event in the reader's language, with a working key. */
export function FirstEventTabs({ apiKey }: { apiKey: string }) {
  const [chosen, setChosen] = useState(readStored('snippet') ?? '')
  const snippet = SNIPPETS.find(({ name }) => name === chosen) ?? SNIPPETS[0]!

  return (
    <Tabs
      label="Languages"
      tabs={SNIPPETS.map(({ name }) => ({ name, label: name }))}
      chosen={snippet.name}
      onChoose={name => {
        setChosen(name)
        store('snippet', name)
      }}
    >
      <CodeBlock label={snippet.name} text={snippet.toCode(location.origin, apiKey)} />
    </Tabs>
  )
}
