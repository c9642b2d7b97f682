// Keeps a page current that the browser translates. The translators of Chrome and Edge replace each
// text by elements. Preact would go on changing the removed text, which nobody sees, and leave the
// elements behind. So a replaced text takes its place again as soon as Preact touches it, and the
// browser translates it anew.

export {}

new MutationObserver(changes => {
  for (const { removedNodes, addedNodes, previousSibling, nextSibling } of changes) {
    const [text] = removedNodes
    const font = [...addedNodes, previousSibling, nextSibling].find(one => one?.nodeName === 'FONT')
    if (text instanceof Text && !text.isConnected && font) takeBack(text, font as Element)
  }
}).observe(document.body, { childList: true, subtree: true })

/** Puts a text in place of its translation, when something reads its place or changes it. */
function takeBack(text: Text, translation: Element): void {
  const restore = () => {
    for (const name of ['parentNode', 'nextSibling', 'data'] as const)
      Reflect.deleteProperty(text, name)
    if (!text.isConnected) translation.replaceWith(text)
  }
  const define = (name: 'parentNode' | 'nextSibling' | 'data') =>
    Object.defineProperty(text, name, {
      configurable: true,
      get() {
        restore()
        return text[name]
      },
      set(value: string) {
        restore()
        text.data = value
      },
    })
  define('parentNode')
  define('nextSibling')
  define('data')
}
