import { useLocation } from 'preact-iso'
import { useLayoutEffect, useRef } from 'preact/hooks'
import type { Account } from '../../../access/sign-in/schema.ts'
import { isComposing, toShortcutKey } from '../key-press.ts'
import { FailedPart, lazyPages } from '../lazy-page.tsx'
import { loadOnDemand } from '../load-on-demand.ts'
import { readStored } from '../storage.ts'
import { Icon } from '../components/icon.tsx'
import { listShortcutLinks } from '../components/navigation.tsx'
import { toFeedPath } from '../paths.ts'
import { findProject, session } from '../session.ts'
import { focusSearch, openDialog } from './state.ts'

const content = lazyPages(loadOnDemand, FailedPart)
const Palette = content('Palette')
const ShortcutsHelp = content('ShortcutsHelp')

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

  // A layout effect, so that the next key already belongs to the project that is shown.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const { key, target, timeStamp } = event
      const shortcut = toShortcutKey(event)
      if (event.altKey || isComposing(event) || event.defaultPrevented) return
      const isPalette = (event.ctrlKey || event.metaKey) && shortcut === 'k' && !event.shiftKey
      if (document.querySelector('dialog[open], :popover-open')) return
      if (!isPalette && target instanceof Element && target.closest(TYPING)) return
      if (event.ctrlKey || event.metaKey) {
        if (!isPalette) return
        openDialog.value = 'palette'
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

  const { value } = openDialog
  return (
    value && (
      <ShortcutDialog key={value} isPalette={value === 'palette'} {...{ account, project }} />
    )
  )
}

interface DialogOptions {
  account: Account
  project: string | undefined
  isPalette: boolean
}

/** The dialog opens at once, and takes the keys that are typed while its content loads. */
function ShortcutDialog({ account, project, isPalette }: DialogOptions) {
  const dialog = useRef<HTMLDialogElement>(null)
  const input = useRef<HTMLInputElement>(null)
  // A layout effect, so that the next key already goes to the input.
  useLayoutEffect(() => dialog.current?.showModal(), [])

  /** Closes at once, because the event of the dialog comes after the next keys. */
  function close() {
    // Closing first returns the focus to where it was. Chromium returns it without the caret.
    dialog.current?.close()
    const { activeElement } = document
    if (activeElement instanceof HTMLInputElement) {
      activeElement.blur()
      activeElement.focus({ preventScroll: true })
    }
    openDialog.value = undefined
  }

  return (
    <dialog
      ref={dialog}
      class={isPalette ? 'dialog palette' : 'dialog'}
      aria-label={isPalette ? 'Command palette' : 'Keyboard shortcuts'}
      // The event of a former dialog comes when the next one may be open.
      onClose={() => dialog.current && close()}
    >
      {isPalette && (
        <div class="search">
          <Icon name="search" size={18} />
          <input
            ref={input}
            aria-label="Search pages and actions"
            placeholder="Type a command or search"
            autocomplete="off"
            autofocus
          />
        </div>
      )}
      {isPalette ? (
        <Palette {...{ account, project, input }} onClose={close} />
      ) : (
        <ShortcutsHelp links={listShortcutLinks(account, project)} onClose={close} />
      )}
    </dialog>
  )
}

/** The project of the page, or the most recently opened one. */
function findCurrent(account: Account, path: string): string | undefined {
  const [, segment] = /^\/p\/([^/]+)/.exec(path) ?? []
  const project = segment === undefined ? readStored('project') : decodeURIComponent(segment)
  return project !== undefined && findProject(account, project) ? project : undefined
}
