import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { Icon } from './icon.tsx'

interface PopoverOptions {
  id: string
  class: string
  /** The name of the navigation that it is; undefined for another menu. */
  label?: string
  /** True to draw the content before it opens. */
  isDrawn?: boolean
  children: ComponentChildren
}

/** A popover, which a link in it closes. Its content is drawn while it is open. */
export function Popover({ label, isDrawn = false, children, ...attributes }: PopoverOptions) {
  const [isOpened, setOpened] = useState(false)
  const Tag = label === undefined ? 'div' : 'nav'
  return (
    <Tag
      popover="auto"
      aria-label={label}
      onBeforeToggle={({ newState }) => newState === 'open' && setOpened(true)}
      onToggle={({ newState }) => newState === 'closed' && setOpened(false)}
      onClick={({ target, currentTarget }) => {
        const isLink = target instanceof Element && target.closest('a')
        if (isLink && currentTarget.matches(':popover-open')) currentTarget.hidePopover()
      }}
      {...attributes}
    >
      {(isDrawn || isOpened) && children}
    </Tag>
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
