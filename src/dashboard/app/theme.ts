import { signal } from '@preact/signals'
import { store } from './storage.ts'

export const THEMES = ['system', 'light', 'dark'] as const
export type Theme = (typeof THEMES)[number]

export const theme = signal<Theme>(read())

export function chooseTheme(chosen: Theme): void {
  theme.value = chosen
  if (chosen === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = chosen
  // theme-early.ts reads it.
  store('theme', chosen)
}

function read(): Theme {
  const chosen = document.documentElement.dataset['theme']
  return THEMES.find(one => one === chosen) ?? 'system'
}
