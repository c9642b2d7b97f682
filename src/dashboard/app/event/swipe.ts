import { muteChannel, shareEvent } from './actions.ts'

/** From this distance on, a horizontal movement is a swipe, and a row is not opened. */
const START_PX = 12
/** From this distance on, releasing the row runs its action. */
const ACT_PX = 88

/**
 * Lets a finger swipe the rows of a list: to the right to share the event, to the left to mute its
 * channel. The panel of an event has the same actions as buttons. Returns a function that ends it.
 */
export function enableSwipes(list: HTMLElement, project: string): () => void {
  let touch: { row: HTMLElement; id: number; x: number; y: number; dx: number } | undefined
  let wasSwiped = false

  function press({ target, pointerType, pointerId, clientX, clientY }: PointerEvent) {
    wasSwiped = false
    const row = target instanceof Element ? target.closest<HTMLElement>('article') : null
    if (row && pointerType === 'touch')
      touch = { row, id: pointerId, x: clientX, y: clientY, dx: 0 }
  }

  function move({ pointerId, clientX, clientY }: PointerEvent) {
    if (touch?.id !== pointerId) return
    const { row, x, y } = touch
    // A group of events has no link to share.
    const dx = row.dataset['event'] === undefined ? Math.min(0, clientX - x) : clientX - x
    if (touch.dx === 0 && (Math.abs(dx) < START_PX || Math.abs(dx) < Math.abs(clientY - y))) return
    if (touch.dx === 0) row.setPointerCapture(pointerId)
    wasSwiped = true
    touch.dx = dx
    row.dataset['swipe'] = dx > 0 ? 'Share' : 'Mute'
    row.classList.toggle('swipe-left', dx < 0)
    row.style.translate = `${dx}px`
  }

  function release({ type }: PointerEvent) {
    if (!touch) return
    const { row, dx } = touch
    touch = undefined
    row.style.translate = ''
    delete row.dataset['swipe']
    if (type === 'pointercancel' || Math.abs(dx) < ACT_PX) return
    const { event = '', channel = '' } = row.dataset
    if (dx > 0) void shareEvent(project, event, row.querySelector('h2')?.textContent ?? '')
    else void muteChannel(project, channel, row.querySelector('.channel')?.textContent ?? '')
  }

  function click(event: MouseEvent) {
    if (!wasSwiped) return
    event.preventDefault()
    event.stopPropagation()
  }

  list.addEventListener('pointerdown', press)
  list.addEventListener('pointermove', move)
  list.addEventListener('pointerup', release)
  list.addEventListener('pointercancel', release)
  list.addEventListener('click', click, { capture: true })
  return () => {
    list.removeEventListener('pointerdown', press)
    list.removeEventListener('pointermove', move)
    list.removeEventListener('pointerup', release)
    list.removeEventListener('pointercancel', release)
    list.removeEventListener('click', click, { capture: true })
  }
}
