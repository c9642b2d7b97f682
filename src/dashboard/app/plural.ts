/** A count with its noun, such as "1 event" or "1,000 events". */
export function toPlural(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`
}
