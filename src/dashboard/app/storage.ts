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

/** Deletes everything whose name begins with `prefix`. */
export function forget(prefix: string): void {
  try {
    const names = Object.keys(localStorage)
    for (const name of names)
      if (name.startsWith(`tidings.${prefix}`)) localStorage.removeItem(name)
  } catch {
    // Storage may be blocked.
  }
}
