/** Shows a number on the icon of the installed app; 0 clears it. A browser may refuse. */
export async function setBadge(count: number): Promise<void> {
  await (navigator as Partial<Navigator>).setAppBadge?.(count).catch(() => {})
}
