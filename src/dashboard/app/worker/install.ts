import { signal } from '@preact/signals'

/** What a browser hands to a page that it would install. */
interface InstallEvent extends Event {
  prompt(): Promise<unknown>
}

/** Asks the reader to install the application; undefined where the browser has not offered it. */
export const promptInstall = signal<(() => void) | undefined>(undefined)

addEventListener('beforeinstallprompt', event => {
  // The offer waits on its page instead of covering another.
  event.preventDefault()
  promptInstall.value = () => {
    promptInstall.value = undefined // It is good for once.
    void (event as InstallEvent).prompt()
  }
})
addEventListener('appinstalled', () => (promptInstall.value = undefined))
