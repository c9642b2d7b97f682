import { useEffect, useRef, useState } from 'preact/hooks'

/** The events of a button that moves a card, by the pointer or by the arrow keys. */
export interface MoveHandle {
  onPointerDown(event: PointerEvent): void
  onKeyDown(event: KeyboardEvent): void
}

interface MovingOptions {
  /** The ids of the cards, in their order. */
  ids: readonly string[]
  onMove(ids: string[], moved: string): void
}

const STEPS: Readonly<Record<string, number>> = {
  ArrowUp: -1,
  ArrowLeft: -1,
  ArrowDown: 1,
  ArrowRight: 1,
}

/**
 * Moves cards: drag the handle of one over another, or press the arrow keys on it. Cards are
 * elements with `data-card`. Nothing moves before the pointer is released, because a browser ends
 * the drag of an element that is moved in the page.
 */
export function useMoving({ ids, onMove }: MovingOptions) {
  const [moving, setMoving] = useState<string>()
  const [over, setOver] = useState<string>()
  const stop = useRef(() => {})
  useEffect(() => () => stop.current(), [])

  function move(id: string, to: number) {
    const rest = ids.filter(one => one !== id)
    if (to < 0 || to > rest.length || ids.indexOf(id) === to) return
    onMove([...rest.slice(0, to), id, ...rest.slice(to)], id)
  }

  function drag(id: string, { pointerId }: PointerEvent) {
    let target: string | undefined
    const controller = new AbortController()
    const { signal } = controller
    stop.current = () => {
      controller.abort()
      setMoving(undefined)
      setOver(undefined)
    }
    setMoving(id)
    const follow = (event: PointerEvent) => {
      if (event.pointerId !== pointerId) return
      target = findCard(event)
      setOver(target === id ? undefined : target)
    }
    const release = (event: PointerEvent) => {
      if (event.pointerId !== pointerId) return
      stop.current()
      if (target !== undefined) move(id, ids.indexOf(target))
    }
    const cancel = (event: KeyboardEvent) => event.key === 'Escape' && stop.current()
    addEventListener('pointermove', follow, { signal })
    addEventListener('pointerup', release, { signal })
    addEventListener('pointercancel', () => stop.current(), { signal })
    addEventListener('keydown', cancel, { signal })
  }

  return {
    moving,
    over,
    toHandle: (id: string): MoveHandle => ({
      onPointerDown(event) {
        if (event.button === 0) drag(id, event)
      },
      onKeyDown(event) {
        const step = STEPS[event.key]
        if (step === undefined) return
        event.preventDefault()
        move(id, ids.indexOf(id) + step)
      },
    }),
  }
}

function findCard({ clientX, clientY }: PointerEvent): string | undefined {
  const card = document.elementFromPoint(clientX, clientY)?.closest<HTMLElement>('[data-card]')
  return card?.dataset['card']
}
