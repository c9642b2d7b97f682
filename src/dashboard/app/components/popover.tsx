import type { ComponentChildren, TargetedMouseEvent } from 'preact'
import { useState } from 'preact/hooks'

interface PopoverOptions {
  id: string
  class: string
  /** The name of the navigation that it is; undefined for another menu. */
  label?: string
  /** True to draw the content before it opens. */
  isDrawn?: boolean
  onClick?(event: TargetedMouseEvent<HTMLElement>): void
  children: ComponentChildren
}

/** A popover. Its content is drawn while it is open, as most visits need none. */
export function Popover({ label, isDrawn = false, children, ...attributes }: PopoverOptions) {
  const [isOpened, setOpened] = useState(false)
  const Element = label === undefined ? 'div' : 'nav'
  return (
    <Element
      popover="auto"
      aria-label={label}
      onBeforeToggle={({ newState }) => newState === 'open' && setOpened(true)}
      onToggle={({ newState }) => newState === 'closed' && setOpened(false)}
      {...attributes}
    >
      {(isDrawn || isOpened) && children}
    </Element>
  )
}
