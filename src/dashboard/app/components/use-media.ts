import { useEffect, useState } from 'preact/hooks'

/** The same breakpoint as in event.css: wide enough for an event next to the list. */
const WIDE = '(min-width: 64rem)'

/** Returns whether an open event covers the list. */
export function useNarrowScreen(): boolean {
  const [isNarrow, setNarrow] = useState(!matchMedia(WIDE).matches)
  useEffect(() => {
    const query = matchMedia(WIDE)
    const look = () => setNarrow(!query.matches)
    query.addEventListener('change', look)
    return () => query.removeEventListener('change', look)
  }, [])
  return isNarrow
}
