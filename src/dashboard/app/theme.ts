import { effect, signal } from '@preact/signals'
import { store } from './storage.ts'

export const THEMES = ['system', 'light', 'dark'] as const

const { dataset } = document.documentElement

/** The theme of this browser. A change applies at once, and is stored. */
export const theme = signal(THEMES.find(one => one === dataset['theme']) ?? 'system')
effect(() => {
  if (theme.value === 'system') delete dataset['theme']
  else dataset['theme'] = theme.value
  storeTheme()
})

/** Stores the theme where theme-early.ts reads it. */
export function storeTheme(): void {
  store('theme', theme.value)
}
