import { copyText } from '../copy-text.ts'
import { readStored } from '../storage.ts'
import { offerSearch } from './search.ts'

// Adds the search, and buttons that copy code.
const COPIED_MS = 2_000
/** From these widths on the stylesheet shows them as columns. */
const COLUMNS = { '.sidebar': '(min-width: 60rem)', '.on-this-page': '(min-width: 84rem)' }

for (const [selector, width] of Object.entries(COLUMNS)) {
  const details = document.querySelector(`${selector} details`)
  if (details instanceof HTMLDetailsElement && matchMedia(width).matches) details.open = true
}

/** The project of a member who has used the dashboard in this browser. */
const project = readStored('project')

for (const caption of document.querySelectorAll('.code-block figcaption')) {
  const button = document.createElement('button')
  const text = caption.parentElement?.querySelector('pre')
  button.type = 'button'
  button.className = 'quiet-button'
  button.textContent = 'Copy'
  button.addEventListener('click', async () => {
    button.textContent = (await copyText(text?.textContent ?? '')) ? 'Copied' : 'Not copied'
    setTimeout(() => (button.textContent = 'Copy'), COPIED_MS)
  })
  if (project && text?.textContent.includes('tdg_…')) {
    const link = document.createElement('a')
    link.href = `/p/${project}/settings/keys`
    link.textContent = 'Get a key'
    caption.append(link)
  }
  caption.append(button)
}

// A table that is wider than the screen scrolls, also by keyboard.
for (const wide of document.querySelectorAll('.wide'))
  if (wide instanceof HTMLElement && wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0

const search = document.getElementById('search')
if (search) offerSearch(search)
