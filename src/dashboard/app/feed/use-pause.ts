import type { RefObject } from 'preact'
import { useEffect } from 'preact/hooks'
import { toShortcutKey } from '../key-press.ts'
import type { PauseReason } from '../live/pill.ts'
import type { Feed } from './feed.ts'

/** Scrolling further than this pauses the feed. */
const SCROLLED_PX = 8
/** Elements that handle keys themselves. */
export const INTERACTIVE =
  'input, textarea, select, button, a, summary, [contenteditable], dialog, [popover]'
/** The button that opens a group of equal events. */
const GROUP = 'article [aria-expanded]'

interface PauseOptions {
  list: RefObject<HTMLElement | null>
  /** True while an event is open. */
  isOpen: boolean
}

/**
 * Pauses the feed on scroll, focus, selection or Space, while a row is under the mouse, and while
 * an event is open. The keys j and k move between rows.
 */
export function usePause(feed: Feed, { list, isOpen }: PauseOptions): { resume(): void } {
  function resume() {
    const { activeElement } = document
    if (activeElement instanceof HTMLElement && list.current?.contains(activeElement))
      activeElement.blur()
    getSelection()?.removeAllRanges()
    scrollTo({ top: 0 })
    feed.dispatch({ type: 'resume' })
  }

  useEffect(() => {
    const set = (reason: PauseReason, isOn: boolean) =>
      feed.dispatch({ type: isOn ? 'pause' : 'release', reason })
    const isInside = (node: Node | null) => list.current?.contains(node) === true

    const onScroll = () => set('scrolled', scrollY > SCROLLED_PX)
    const onFocus = ({ target }: FocusEvent) => set('focus', isInside(target as Node | null))
    const onBlur = ({ relatedTarget }: FocusEvent) => {
      if (!isInside(relatedTarget as Node | null)) set('focus', false)
    }
    const onSelect = () => {
      const selection = getSelection()
      set(
        'selection',
        selection !== null && !selection.isCollapsed && isInside(selection.anchorNode),
      )
    }
    // Rows that move under a resting mouse cause no such event.
    const onHover = ({ target, pointerType }: PointerEvent) => {
      const row = target instanceof Element ? target.closest('article') : null
      set('hover', pointerType === 'mouse' && row !== null)
    }
    const onLeave = () => set('hover', false)
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return
      const { target } = event
      const isOwn = target instanceof Element && target.matches(`${GROUP}, .pill`)
      if (!isOwn && target instanceof Element && target.closest(INTERACTIVE)) return
      const key = toShortcutKey(event)
      if (key === ' ' && !isOwn) {
        if (feed.live.value.reasons.size > 0) resume()
        else set('manual', true)
      } else if (key === 'j') move(1)
      else if (key === 'k') move(-1)
      else return
      event.preventDefault()
    }
    const move = (by: number) => {
      const rows = [
        ...(list.current?.querySelectorAll<HTMLElement>(`article[tabindex], ${GROUP}`) ?? []),
      ]
      const at = rows.findIndex(row => row === document.activeElement)
      const next = rows[at < 0 ? 0 : at + by]
      next?.focus({ preventScroll: true })
      next?.closest('article')?.scrollIntoView({ block: 'nearest' })
    }

    // Reading the position at once would lay out the page before its rows are there.
    const timer = setTimeout(onScroll)
    const end = new AbortController()
    const { signal } = end
    addEventListener('scroll', onScroll, { passive: true, signal })
    addEventListener('focusin', onFocus, end)
    addEventListener('focusout', onBlur, end)
    document.addEventListener('selectionchange', onSelect, end)
    addEventListener('pointermove', onHover, { passive: true, signal })
    document.documentElement.addEventListener('pointerleave', onLeave, end)
    addEventListener('keydown', onKey, end)
    return () => {
      clearTimeout(timer)
      end.abort()
    }
  }, [feed])

  // The row of the open event stays next to it.
  useEffect(() => {
    feed.dispatch({ type: isOpen ? 'pause' : 'release', reason: 'event' })
  }, [feed, isOpen])

  return { resume }
}
