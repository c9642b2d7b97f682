/** What a browser keeps for its reader's convenience; nothing depends on it. */
export function store(name: string, value: string): void {
  try {
    localStorage.setItem(`tidings.${name}`, value)
  } catch {
    // Storage may be full or forbidden.
  }
}

export function readStored(name: string): string | undefined {
  try {
    return localStorage.getItem(`tidings.${name}`) ?? undefined
  } catch {
    return undefined
  }
}
