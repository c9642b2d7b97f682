/** Stores a preference in this browser. It may be lost at any time. */
export function store(name: string, value: string): void {
  try {
    localStorage.setItem(`tidings.${name}`, value)
  } catch {
    // Storage may be full or blocked.
  }
}

export function readStored(name: string): string | undefined {
  try {
    return localStorage.getItem(`tidings.${name}`) ?? undefined
  } catch {
    return undefined
  }
}
