/** Copies `text` and returns whether it worked. Plain HTTP offers only `execCommand`. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    const { activeElement } = document
    const input = document.createElement('textarea')
    input.value = text
    input.className = 'visually-hidden'
    document.body.append(input)
    input.select()
    const isDone = document.execCommand('copy')
    input.remove()
    if (activeElement instanceof HTMLElement) activeElement.focus()
    return isDone
  }
}
