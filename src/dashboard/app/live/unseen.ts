import { toCount } from './pill.ts'

/** The title of the tab, with the number of events that nobody has seen yet. */
export function toTitle(title: string, unseen: number): string {
  return unseen === 0 ? title : `(${toCount(unseen)}) ${title}`
}

/** Puts the number on the icon of the installed app, where there is one. */
export function setBadge(unseen: number): void {
  const badge = navigator as Navigator & { setAppBadge?(count: number): Promise<void> }
  // 0 takes it away. A browser may refuse; the title says it, too.
  void badge.setAppBadge?.(unseen).catch(() => {})
}
