import { toChildArray, type ComponentChildren } from 'preact'

/** The details of an item, with dots between the parts. Nothing without a part. */
export function Details({ children }: { children: ComponentChildren }) {
  const parts = toChildArray(children).filter(part => part !== '')
  if (parts.length === 0) return null
  return (
    <p class="item-details">{parts.flatMap((part, at) => (at === 0 ? [part] : [' · ', part]))}</p>
  )
}
