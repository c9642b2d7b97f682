/** Whether a text could be copied. Over plain http, browsers offer only the old way: what is selected. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const { activeElement } = document
    const place = document.createElement('textarea')
    place.value = text
    place.className = 'visually-hidden'
    document.body.append(place)
    place.select()
    const isDone = document.execCommand('copy')
    place.remove()
    if (activeElement instanceof HTMLElement) activeElement.focus()
    return isDone
  }
}
