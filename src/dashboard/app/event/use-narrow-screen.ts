import { useEffect, useState } from 'preact/hooks'

/** As event.css has it: from here on there is room for an event beside the list. */
const WIDE = '(min-width: 72rem)'

/** Whether an event that is open covers everything else. */
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
