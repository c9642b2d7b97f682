import { useState } from 'preact/hooks'

/** Notices that a popover opens. Its contents are drawn only then, as most visits need none. */
export function useOpened() {
  const [isOpened, setOpened] = useState(false)
  return { isOpened, onBeforeToggle: () => setOpened(true) }
}
