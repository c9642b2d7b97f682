import { useLocation } from 'preact-iso'
import { useEffect, useRef } from 'preact/hooks'
import type { Account } from '../../../accounts/schema.ts'
import { readStored } from '../storage.ts'
import { listShortcutLinks } from '../components/navigation.tsx'
import { toFeedPath } from '../paths.ts'
import { findProject, session } from '../session.ts'
import { ShortcutsHelp } from './shortcuts-help.tsx'
import { Palette } from './palette.tsx'
import { openDialog, focusSearch } from './state.ts'

/** The time limit for the second key after g. */
const SECOND_KEY_MS = 1_500
const TYPING =
  'input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]:not([contenteditable=false])'

/** The shortcuts of signed-in accounts. They are off while typing and while a dialog is open. */
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
      if (event.altKey || event.isComposing || event.defaultPrevented) return
      if (target instanceof Element && target.closest(TYPING)) return
      if (document.querySelector('dialog[open], :popover-open')) return
      if (event.ctrlKey || event.metaKey) {
        if (key !== 'k' || event.shiftKey) return
        openDialog.value = 'palette'
      } else if (timeStamp - goMs.current < SECOND_KEY_MS) {
        goMs.current = -Infinity
        const to = listShortcutLinks(account, project).find(place => place.key === key)
        if (to) route(to.path)
      } else if (key === 'g' && !event.repeat) goMs.current = timeStamp
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
  if (openDialog.value === 'palette')
    return <Palette account={account} project={project} onClose={close} />
  return openDialog.value === 'keys' ? (
    <ShortcutsHelp links={listShortcutLinks(account, project)} onClose={close} />
  ) : null
}

/** The project of the page, or the most recently opened one. */
function findCurrent(account: Account, path: string): string | undefined {
  const [, segment] = /^\/p\/([^/]+)/.exec(path) ?? []
  const project = segment === undefined ? readStored('project') : decodeURIComponent(segment)
  return project !== undefined && findProject(account, project) ? project : undefined
}
