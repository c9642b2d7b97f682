import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER, type TestPage } from '../support/clients/chromium.ts'
import { openScreens, type ScreenPages } from './screen-pages.ts'
import { SCREENS } from './screens.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

const SCHEMES = ['light', 'dark'] as const
/** Colours hardly depend on the width, so that each device shows one scheme. Pictures show both. */
const DEVICES = [
  ['phone', ['dark']],
  ['wide', ['light']],
] as const
const WITH_PICTURES = process.env['PICTURES'] !== undefined

/** Declares a test per screen. Halves of the screens have separate files, to run at once. */
export function describeScreens(half: 'first' | 'second'): void {
  const middle = Math.ceil(SCREENS.length / 2)
  const screens = half === 'first' ? SCREENS.slice(0, middle) : SCREENS.slice(middle)

  describe.skipIf(!HAS_BROWSER)('dashboard.md: every screen', () => {
    let dashboard: Dashboard
    let pages: ScreenPages
    /** The kinds of controls whose focus was checked. */
    const checked = new Set<string>()
    beforeAll(async () => {
      dashboard = await openDashboard()
      pages = openScreens(dashboard.browser, dashboard.url)
    })
    afterAll(async () => {
      await pages[Symbol.asyncDispose]()
      await dashboard[Symbol.asyncDispose]()
    })

    test.each(screens)(
      '$name keeps to the policy, fits a phone and a wide screen, and axe finds nothing, light or dark',
      async screen => {
        const shown = await pages.show(screen)
        await shown.page.locator(screen.until).first().waitFor()
        await screen.act?.(shown.page)
        for (const [device, schemes] of DEVICES) {
          await shown.become(device)
          expect(await findOverflow(shown)).toBe(0)
          expect(await listSplitWords(shown)).toEqual([])
          expect(await listCutLinks(shown)).toEqual([])
          expect(await listCutChoices(shown)).toEqual([])
          expect(await listCrowdedButtons(shown)).toEqual([])
          expect(await listOverlaps(shown)).toEqual([])
          for (const scheme of WITH_PICTURES ? SCHEMES : schemes) {
            await shown.paint(scheme)
            await shown.picture(screen.name)
            expect([device, scheme, await shown.findBarriers()]).toEqual([device, scheme, []])
          }
        }
        expect(await listUnnamedControls(shown)).toEqual([])
        expect(await listChangedNames(shown)).toEqual([])
        expect(await listForcedColorFaults(shown, checked)).toEqual([])
        expect(shown.problems).toEqual([])
      },
    )
  })
}

/** Returns the number of pixels by which a page is wider than its window. */
function findOverflow({ page }: TestPage): Promise<number> {
  return page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement
    return scrollWidth - clientWidth
  })
}

/** Lists short words that a line ends inside of, and circles too narrow for wide initials. */
function listSplitWords({ page }: TestPage): Promise<string[]> {
  return page.evaluate(() => {
    const split: string[] = []
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
    while (texts.nextNode()) {
      const text = texts.currentNode as Text
      // Names and values of applications are split where they must.
      if (!text.parentElement?.checkVisibility() || text.parentElement.closest('bdi, code, pre'))
        continue
      for (const { 0: word, index } of text.data.matchAll(/\p{L}{2,20}/gu)) {
        const range = document.createRange()
        range.setStart(text, index)
        range.setEnd(text, index + word.length)
        const lines = [...range.getClientRects()].filter(({ width }) => width > 0)
        if (lines.some(({ top }) => top >= lines[0]!.bottom)) split.push(word)
      }
    }
    const context = document.createElement('canvas').getContext('2d')!
    const cut = [...document.querySelectorAll('.initials')].filter(({ clientWidth }, n, all) => {
      context.font = getComputedStyle(all[n]!, '::before').font
      return clientWidth > 0 && context.measureText('MH').width > clientWidth
    })
    return [...split, ...cut.map(() => 'MH')]
  })
}

/** Lists the links of the bottom bar whose names do not fit. */
function listCutLinks({ page }: TestPage): Promise<string[]> {
  return page
    .locator('.bottom-bar > *')
    .evaluateAll(all =>
      all.filter(one => one.scrollWidth > one.clientWidth).map(one => one.textContent),
    )
}

/** Lists the chosen options whose text does not fit into their selects. */
function listCutChoices({ page }: TestPage): Promise<string[]> {
  return page.locator('main select').evaluateAll(all =>
    all
      .filter(one => one instanceof HTMLSelectElement && one.checkVisibility())
      .flatMap(one => {
        const { selectedOptions, clientWidth } = one as HTMLSelectElement
        const text = selectedOptions[0]?.text ?? ''
        const { font, paddingLeft, paddingRight } = getComputedStyle(one)
        const context = document.createElement('canvas').getContext('2d')!
        context.font = font
        const space = clientWidth - Number.parseFloat(paddingLeft) - Number.parseFloat(paddingRight)
        // The arrow takes about the height of the text.
        const arrow = Number.parseFloat(getComputedStyle(one).fontSize)
        return context.measureText(text).width + arrow > space ? [text] : []
      }),
  )
}

/** Lists the buttons with an edge that nearly touch a heading above, or a result below. */
function listCrowdedButtons({ page }: TestPage): Promise<string[]> {
  return page.evaluate(() => {
    const leastPx = 8
    const list = (selector: string) =>
      [...document.querySelectorAll<HTMLElement>(selector)].filter(
        one => one.checkVisibility() && one.innerText !== '',
      )
    const texts = list('main :is(h2, [role=status])')
    return list('main .button').flatMap(button => {
      const { top, bottom, left, right } = button.getBoundingClientRect()
      return texts
        .filter(text => {
          const place = text.getBoundingClientRect()
          const isInColumn = place.left < right && place.right > left
          const gap = place.top < top ? top - place.bottom : place.top - bottom
          const isBeside = text.closest('dialog') === button.closest('dialog')
          return isInColumn && isBeside && !text.contains(button) && gap < leastPx
        })
        .map(text => `${button.innerText} at ${text.innerText.slice(0, 60)}`)
    })
  })
}

/** Lists the buttons that lie on one another, where a press can reach the wrong one. */
function listOverlaps({ page }: TestPage): Promise<string[]> {
  return page.evaluate(() => {
    const root = document.querySelector('dialog[open]') ?? document.querySelector('main')
    const buttons = [
      ...(root?.querySelectorAll<HTMLElement>('button, .button, a.quiet-button') ?? []),
    ]
      .filter(one => one.checkVisibility())
      .map(one => ({ name: one.innerText, place: one.getBoundingClientRect() }))
    return buttons.flatMap(({ name, place }, at) =>
      buttons
        .slice(at + 1)
        .filter(
          ({ place: other }) =>
            other.left < place.right - 1 &&
            other.right > place.left + 1 &&
            other.top < place.bottom - 1 &&
            other.bottom > place.top + 1,
        )
        .map(other => `${name} and ${other.name}`),
    )
  })
}

/** Lists the names that members have chosen and that the styles write in other letters. */
function listChangedNames({ page }: TestPage): Promise<string[]> {
  return page.evaluate(() => {
    const isChanged = (one: Element, part?: string) =>
      getComputedStyle(one, part).textTransform !== 'none'
    return [...document.querySelectorAll('main bdi')]
      .filter(bdi => {
        const parent = bdi.parentElement!
        return isChanged(bdi) || (parent.firstChild === bdi && isChanged(parent, '::first-letter'))
      })
      .map(bdi => bdi.textContent)
  })
}

/** Lists the buttons and links without a name in the accessibility tree of the browser. */
async function listUnnamedControls({ page, context }: TestPage): Promise<string[]> {
  const session = await context.newCDPSession(page)
  const { nodes } = await session.send('Accessibility.getFullAXTree')
  await session.detach()
  return nodes
    .filter(({ ignored, role, name }) => !ignored && isControl(role?.value) && !name?.value)
    .map(({ role, nodeId }) => `${role?.value} ${nodeId}`)
}

function isControl(role: unknown): boolean {
  return ['button', 'link', 'checkbox', 'radio', 'textbox', 'searchbox', 'slider'].includes(
    String(role),
  )
}

/**
 * Lists the faults in forced colours: buttons and current items without an edge, places of the bar
 * at the bottom that differ, everything that moves, and focus that cannot be seen. Controls like
 * those in `checked` are not focused again.
 */
async function listForcedColorFaults({ page }: TestPage, checked: Set<string>): Promise<string[]> {
  const before = await page.evaluate(listPlaces)
  const lines = await page.evaluate(listTransparentLines)
  await page.emulateMedia({ forcedColors: 'active' })
  const faults = await page.evaluate(() => {
    const marked =
      'button, .button, [aria-current], [aria-pressed=true], [aria-selected=true], .badge, .unread'
    const inBar = '.bottom-bar > :not([aria-current])'
    const list = (selector: string) =>
      [...document.querySelectorAll(selector)].filter(element => element.checkVisibility())
    const toEdge = (element: Element) => {
      const { outlineWidth, outlineStyle } = getComputedStyle(element)
      return outlineStyle === 'none' ? 0 : Number.parseFloat(outlineWidth)
    }
    const edges = new Set(list(inBar).map(toEdge))
    return [
      ...list(marked)
        .filter(element => !element.matches(inBar) && toEdge(element) === 0)
        .map(element => `no edge: ${element.outerHTML.slice(0, 120)}`),
      // Scrolling parents would cut it off.
      ...list(marked)
        .filter(element => !element.matches(`${inBar}, :focus-visible`))
        .filter(element => Number.parseFloat(getComputedStyle(element).outlineOffset) >= 0)
        .map(element => `an edge outside: ${element.outerHTML.slice(0, 120)}`),
      ...(edges.size > 1 ? ['different edges in the bar at the bottom'] : []),
    ]
  })
  const after = await page.evaluate(listPlaces)
  // After a key, the browser shows the focus that a script sets, too.
  await page.keyboard.press('Tab')
  const focus = await page.evaluate(listUnseenFocus, [...checked])
  for (const kind of focus.kinds) checked.add(kind)
  await page.emulateMedia({ forcedColors: null })
  // A time that ticks meanwhile differs from one of the two.
  const again = await page.evaluate(listPlaces)
  const moved = after.filter((place, at) => place !== before[at] && place !== again[at])
  return [...lines, ...faults, ...moved, ...focus.faults]
}

/**
 * Runs in the page: lists the elements with one transparent border, which forced colours would draw
 * as a line. A frame of four is meant to appear there.
 */
function listTransparentLines(): string[] {
  return [...document.querySelectorAll('#app *')]
    .filter(element => {
      const style = getComputedStyle(element)
      const colours = (['Top', 'Right', 'Bottom', 'Left'] as const)
        .filter(side => Number.parseFloat(style[`border${side}Width`]) > 0)
        .map(side => style[`border${side}Color`])
      return colours.length === 1 && colours[0] === 'rgba(0, 0, 0, 0)'
    })
    .map(element => `a line that appears: ${element.outerHTML.slice(0, 120)}`)
}

/**
 * Runs in the page: focuses the controls, except those of the kinds in `checked`. Returns their
 * kinds, and lists those without an outline for the focus or with one that a parent cuts off.
 */
function listUnseenFocus(checked: readonly string[]): { faults: string[]; kinds: string[] } {
  interface Box {
    element: Element
    pseudo?: '::after'
  }
  const toKind = (control: Element) => {
    const names: string[] = []
    for (let one: Element | null = control; one; one = one.parentElement)
      names.push(`${one.tagName}.${one.className} ${one.getAttribute('aria-pressed')}`)
    return names.join(' < ')
  }
  /** The outline of a control can be around its label or its group. */
  const listBoxes = (control: Element): Box[] => [
    { element: control },
    { element: control, pseudo: '::after' },
    ...[control.nextElementSibling, control.parentElement].flatMap(one =>
      one ? [{ element: one }] : [],
    ),
  ]
  const readOutline = ({ element, pseudo }: Box) => {
    const { outlineStyle, outlineWidth, outlineOffset } = getComputedStyle(element, pseudo)
    const width = outlineStyle === 'none' ? 0 : Number.parseFloat(outlineWidth)
    const reach = width + Number.parseFloat(outlineOffset)
    return { width, reach, text: `${outlineStyle} ${outlineWidth}` }
  }
  const findCutter = (element: Element, reach: number): Element | undefined => {
    const { left, top, right, bottom } = element.getBoundingClientRect()
    for (let one = element; getComputedStyle(one).position !== 'fixed';) {
      if (!one.parentElement) return undefined
      one = one.parentElement
      if (one === document.body) return undefined
      const { overflowX, overflowY, contentVisibility } = getComputedStyle(one)
      const isContained = contentVisibility === 'auto'
      const place = one.getBoundingClientRect()
      const gaps = [
        ...(isContained || overflowX !== 'visible' ? [left - place.left, place.right - right] : []),
        ...(isContained || overflowY !== 'visible' ? [top - place.top, place.bottom - bottom] : []),
      ]
      // Half of a line of 3 pixels is enough to see it.
      if (gaps.some(gap => gap + 1.5 < reach)) return one
    }
    return undefined
  }
  const blur = () => (document.activeElement as HTMLElement | null)?.blur()

  blur()
  const found = new Map<string, HTMLElement>()
  for (const control of document.querySelectorAll<HTMLElement>(
    'a[href], button, input, select, textarea, summary, [tabindex="0"]',
  )) {
    const kind = toKind(control)
    const isSeen = control.checkVisibility({ visibilityProperty: true }) && control.tabIndex >= 0
    if (isSeen && !checked.includes(kind) && !found.has(kind)) found.set(kind, control)
  }
  const controls = [...found.values()].map(control => {
    const boxes = listBoxes(control)
    return { control, boxes, before: boxes.map(box => readOutline(box).text) }
  })
  const kinds: string[] = []
  const faults = controls.flatMap(({ control, boxes, before }) => {
    control.focus()
    // It is disabled, or behind a dialog.
    if (document.activeElement !== control) return []
    kinds.push(toKind(control))
    const box = boxes.find((one, n) => {
      const { width, text } = readOutline(one)
      return width >= 2 && text !== before[n]
    })
    const html = control.outerHTML.slice(0, 120)
    if (!box) return [`no focus: ${html}`]
    const cutter = findCutter(box.element, readOutline(box).reach)
    return cutter ? [`focus cut off by ${cutter.outerHTML.slice(0, 60)}: ${html}`] : []
  })
  blur()
  return { faults, kinds }
}

/** Runs in the page: lists the visible elements with where they are. */
function listPlaces(): string[] {
  return [...document.querySelectorAll('#app *')]
    .filter(element => element.checkVisibility())
    .map(element => {
      const { x, y, width, height } = element.getBoundingClientRect()
      const place = [x, y, width, height].map(Math.round).join(' ')
      return `moved: ${element.outerHTML.slice(0, 120)} at ${place}`
    })
}
