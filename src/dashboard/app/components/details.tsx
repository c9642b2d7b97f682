import { toChildArray, type ComponentChildren } from 'preact'

/** The details of an item, with dots between the parts. Parts that are null are left out. */
export function Details({ children }: { children: ComponentChildren }) {
  return (
    <p class="item-details">
      {toChildArray(children).flatMap((part, at) => (at === 0 ? [part] : [' · ', part]))}
    </p>
  )
}
