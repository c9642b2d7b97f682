import { toCount } from './pill.ts'

/** The tab title with the number of unseen events. */
export function toTitle(title: string, unseen: number): string {
  return unseen === 0 ? title : `(${toCount(unseen)}) ${title}`
}

/** Shows the number on the icon of the installed app. */
export function setBadge(unseen: number): void {
  const badge = navigator as Navigator & { setAppBadge?(count: number): Promise<void> }
  // 0 clears the badge. A browser may refuse; the title shows the number, too.
  void badge.setAppBadge?.(unseen).catch(() => {})
}
