import { ErrorBoundary, useLocation } from 'preact-iso'
import { useEffect, useRef } from 'preact/hooks'
import type { Account } from '../../../access/sign-in/schema.ts'
import { isComposing, toShortcutKey } from '../key-press.ts'
import { lazyPages, loadWithPageStyle } from '../lazy-page.tsx'
import { readStored } from '../storage.ts'
import { listShortcutLinks } from '../components/navigation.tsx'
import { toFeedPath } from '../paths.ts'
import { findProject, session } from '../session.ts'
import { focusSearch, openDialog, typedEarly } from './state.ts'

const dialog = lazyPages(() => loadWithPageStyle(import('./dialogs.ts')))
const Palette = dialog(all => all.Palette)
const ShortcutsHelp = dialog(all => all.ShortcutsHelp)

/** The time limit for the second key after g. */
const SECOND_KEY_MS = 1_500
const TYPING =
  'input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]:not([contenteditable=false])'

/**
 * The shortcuts of signed-in accounts. They are off while a dialog is open. Only Ctrl+K works while
 * typing.
 */
export function Shortcuts() {
  const { value } = session
  return value.kind === 'signed_in' ? <ShortcutsFor account={value.account} /> : null
}

function ShortcutsFor({ account }: { account: Account }) {
  const { route, path } = useLocation()
  const project = findCurrent(account, path)
  // The time of g is a ref, because the page may render before the second key.
  const goMs = useRef(-Infinity)

  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { key, target, timeStamp } = event
      const shortcut = toShortcutKey(event)
      if (event.altKey || isComposing(event) || event.defaultPrevented) return
      const isPalette = (event.ctrlKey || event.metaKey) && shortcut === 'k' && !event.shiftKey
      if (document.querySelector('dialog[open], :popover-open')) return
      const isLoading = openDialog.value === 'palette'
      if (!isPalette && !isLoading && target instanceof Element && target.closest(TYPING)) return
      if (event.ctrlKey || event.metaKey) {
        if (!isPalette) return
        openDialog.value = 'palette'
        typedEarly.value = ''
      } else if (isLoading) {
        if (key === 'Escape') openDialog.value = undefined
        else if (key === 'Backspace') typedEarly.value = typedEarly.value.slice(0, -1)
        else if (key.length === 1) typedEarly.value += key
        else return
      } else if (timeStamp - goMs.current < SECOND_KEY_MS) {
        goMs.current = -Infinity
        const to = listShortcutLinks(account, project).find(place => place.key === shortcut)
        if (to) route(to.path)
      } else if (shortcut === 'g' && !event.repeat) goMs.current = timeStamp
      else if (key === '?') openDialog.value = 'keys'
      else if (key === '/') search()
      else return
      event.preventDefault()
      // Keeps the list from handling the second key.
      event.stopImmediatePropagation()
    }
    const search = () => {
      const box = document.querySelector<HTMLInputElement>('input[type=search]')
      if (box) box.select()
      else if (project !== undefined) {
        focusSearch.value = true
        route(toFeedPath(project))
      }
    }
    // Captures keys before the handlers of the page.
    addEventListener('keydown', onKey, { capture: true })
    return () => removeEventListener('keydown', onKey, { capture: true })
  }, [route, project])

  const close = () => (openDialog.value = undefined)
  if (openDialog.value === undefined) return null
  return (
    <ErrorBoundary>
      {openDialog.value === 'palette' ? (
        <Palette account={account} project={project} onClose={close} />
      ) : (
        <ShortcutsHelp links={listShortcutLinks(account, project)} onClose={close} />
      )}
    </ErrorBoundary>
  )
}

/** The project of the page, or the most recently opened one. */
function findCurrent(account: Account, path: string): string | undefined {
  const [, segment] = /^\/p\/([^/]+)/.exec(path) ?? []
  const project = segment === undefined ? readStored('project') : decodeURIComponent(segment)
  return project !== undefined && findProject(account, project) ? project : undefined
}
