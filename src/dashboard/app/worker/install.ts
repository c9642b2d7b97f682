import { signal } from '@preact/signals'

/** The event of browsers that can install the page. */
interface InstallEvent extends Event {
  prompt(): Promise<unknown>
}

/** Shows the browser's install dialog; undefined until the browser offers it. */
export const promptInstall = signal<(() => void) | undefined>(undefined)

addEventListener('beforeinstallprompt', event => {
  // Shows the offer on the notifications page instead of above any page.
  event.preventDefault()
  promptInstall.value = () => {
    promptInstall.value = undefined // It works once.
    void (event as InstallEvent).prompt()
  }
})
addEventListener('appinstalled', () => (promptInstall.value = undefined))
