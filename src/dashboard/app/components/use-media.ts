import { useEffect, useState } from 'preact/hooks'

/** Returns whether a media query matches, now and after each change. */
export function useMedia(media: string): boolean {
  const [isMatch, setMatch] = useState(matchMedia(media).matches)
  useEffect(() => {
    const query = matchMedia(media)
    const look = () => setMatch(query.matches)
    query.addEventListener('change', look)
    return () => query.removeEventListener('change', look)
  }, [])
  return isMatch
}
