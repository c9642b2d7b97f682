// Input that the reader has not saved. A changed form is marked until its request succeeds.

addEventListener('input', ({ target }) => {
  if (target instanceof Element)
    target.closest<HTMLElement>('form:not([role=search])')?.toggleAttribute('data-changed', true)
})

// The browser asks before a reload, and before the tab is closed.
addEventListener('beforeunload', event => {
  if (hasUnsaved()) event.preventDefault()
})

/** Returns whether a changed form, or a secret that is shown only once, would be lost. */
export function hasUnsaved(): boolean {
  return document.querySelector('[data-changed], [data-once]') !== null
}
