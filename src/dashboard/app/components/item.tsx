import { toChildArray, type ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'
import { QuietButton } from './buttons.tsx'
import { Popover } from './popover.tsx'
import { Moment } from './timestamp.tsx'

interface SectionOptions {
  id: string
  title: string
  children: ComponentChildren
}

/** A part of a page with its heading. */
export function Section({ id, title, children }: SectionOptions) {
  return (
    <section class="section" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {children}
    </section>
  )
}

interface ItemOptions {
  /** The name of what the item is about, with its state. */
  title: ComponentChildren
  details?: ComponentChildren
  /** A word beside the actions, such as a role. */
  badge?: string
  /** The actions. */
  children?: ComponentChildren
}

/** An item of a list, with its actions. */
export function Item({ title, details, badge, children }: ItemOptions) {
  return (
    <li>
      <div class="item-main">
        {title}
        <Details>{details}</Details>
      </div>
      {badge !== undefined && <span class="badge">{badge}</span>}
      <div class="item-actions">{children}</div>
    </li>
  )
}

/** A menu with the actions of an item that are rare, or destroy something. */
export function MoreMenu({ name, children }: { name: string; children: ComponentChildren }) {
  const id = useId()
  return (
    <>
      <QuietButton popovertarget={id} aria-label={`More actions for ${name}`}>
        More
      </QuietButton>
      <Popover id={id} class="menu menu-end">
        {children}
      </Popover>
    </>
  )
}

/** The details of an item, with dots between the parts. Nothing without a part. */
export function Details({ children }: { children: ComponentChildren }) {
  const parts = toChildArray(children).filter(part => part !== '')
  if (parts.length === 0) return null
  return (
    <p class="item-details">{parts.flatMap((part, at) => (at === 0 ? [part] : [' · ', part]))}</p>
  )
}

/** When something was used last, in words. */
export function LastUse({ at }: { at: string | null }) {
  return at === null ? 'never used' : <Moment word="last used" at={at} />
}
