/** The dialogs that shortcuts open, as one script that is loaded on demand. */
export { Palette } from './palette.tsx'
export { ShortcutsHelp } from './shortcuts-help.tsx'
