import { signal, type ReadonlySignal } from '@preact/signals'
import { loadWithStyle } from '../lazy-page.tsx'

type Tools = typeof import('./tools.ts')

const loaded = signal<Tools>()
let loading: Promise<void> | undefined

/** Help with writing a search, once it is loaded. The search box also works without it. */
export const tools: ReadonlySignal<Tools | undefined> = loaded

/** Loads the tools. A failure is tried again with the next call. */
export function loadTools(): void {
  loading ??= loadWithStyle('/assets/search-tools.css', import('./tools.ts')).then(
    module => void (loaded.value = module),
    () => void (loading = undefined),
  )
}
