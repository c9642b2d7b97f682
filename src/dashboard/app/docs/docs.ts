import { copyText } from '../copy-text.ts'
import { offerKey } from './key-offer.ts'

// The documentation is whole without this: it adds buttons to copy, and a key for who is signed in.
const SAID_MS = 2_000

for (const caption of document.querySelectorAll('.sample figcaption')) {
  const button = document.createElement('button')
  const text = caption.parentElement?.querySelector('pre')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = 'Copy'
  button.addEventListener('click', async () => {
    button.textContent = (await copyText(text?.textContent ?? '')) ? 'Copied' : 'Refused'
    setTimeout(() => (button.textContent = 'Copy'), SAID_MS)
  })
  caption.append(button)
}

const place = document.getElementById('key-offer')
if (place) void offerKey(place)
