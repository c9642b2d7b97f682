import type { ComponentChildren, TargetedMouseEvent } from 'preact'
import { useState } from 'preact/hooks'
import { Icon } from './icon.tsx'

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

interface IconMenuOptions {
  id: string
  icon: string
  label: string
  children: ComponentChildren
}

/** A button that is an icon, and what it opens. */
export function IconMenu({ id, icon, label, children }: IconMenuOptions) {
  return (
    <>
      <button type="button" class="icon-button" popovertarget={id} aria-label={label} title={label}>
        <Icon name={icon} />
      </button>
      <Popover id={id} class="menu menu-end">
        {children}
      </Popover>
    </>
  )
}
