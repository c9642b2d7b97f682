import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER, type TestPage } from '../support/clients/chromium.ts'
import { listSizeFaults, openScreen, SCREENS } from './screens.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

const SCHEMES = ['light', 'dark'] as const
/** Colours hardly depend on the width, so that each device shows one scheme. Pictures show both. */
const DEVICES = [
  ['phone', ['dark']],
  ['wide', ['light']],
] as const
const WITH_PICTURES = process.env['PICTURES'] !== undefined

describe.skipIf(!HAS_BROWSER)('dashboard.md: every screen', () => {
  let dashboard: Dashboard
  /** The kinds of controls whose focus was checked. */
  const checked = new Set<string>()
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  test.each(SCREENS)(
    '$name keeps to the policy, fits a phone and a wide screen, and axe finds nothing, light or dark',
    async screen => {
      await using shown = await openScreen(dashboard, screen)
      const { page } = shown
      await page.locator(screen.until).first().waitFor()
      await screen.act?.(page)
      for (const [device, schemes] of DEVICES) {
        await shown.become(device)
        expect([device, await page.evaluate(listLayoutFaults)]).toEqual([device, []])
        expect([device, await page.evaluate(listSizeFaults)]).toEqual([device, []])
        for (const scheme of WITH_PICTURES ? SCHEMES : schemes) {
          await shown.paint(scheme)
          await shown.picture(screen.name)
          expect([device, scheme, await shown.findBarriers()]).toEqual([device, scheme, []])
        }
      }
      expect(await listForcedColorFaults(shown, checked)).toEqual([])
      expect(shown.problems).toEqual([])
    },
  )

  test.each([
    ['en-US', '1,240 of 1,000,000', /^\w+day, \w+ \d+, 2026 at \d+:\d\d:\d\d\s[AP]M/],
    ['de-DE', '1.240 of 1.000.000', /^\w+day,? \d+ \w+ 2026 at \d\d:\d\d:\d\d /],
  ])('has the clock and the numbers of a reader of %s', async (locale, used, time) => {
    const { path, prepare } = SCREENS.find(({ name }) => name === 'server')!
    await using shown = await dashboard.openFaked({ locale, prepare: api => prepare?.(api) })
    await shown.page.goto(dashboard.url + path)
    await shown.page.getByText(`${used} events this minute`).waitFor()
    expect(await shown.page.locator('time').first().getAttribute('title')).toMatch(time)
    expect(shown.problems).toEqual([])
  })
})

/**
 * Runs in the page: lists what does not fit, and what the styles spoil. A page can be wider than
 * its window. A line can end inside of a short word. A circle can be too narrow for initials.
 * Names of the bottom bar and chosen options can be cut. Buttons can nearly touch a heading above
 * or a result below, or lie on one another. Names of members can be in other letters.
 */
function listLayoutFaults(): string[] {
  const faults: string[] = []
  const list = (selector: string, root: ParentNode = document) =>
    [...root.querySelectorAll<HTMLElement>(selector)].filter(one => one.checkVisibility())
  const { scrollWidth, clientWidth } = document.documentElement
  if (scrollWidth > clientWidth) faults.push(`wider by ${scrollWidth - clientWidth}`)

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
      if (lines.some(({ top }) => top >= lines[0]!.bottom)) faults.push(`split: ${word}`)
    }
  }

  const context = document.createElement('canvas').getContext('2d')!
  const measure = (text: string, { font }: CSSStyleDeclaration) => {
    context.font = font
    return context.measureText(text).width
  }
  for (const circle of list('.initials')) {
    if (measure('MH', getComputedStyle(circle, '::before')) > circle.clientWidth)
      faults.push('initials are cut')
  }
  for (const link of list('.bottom-bar > *'))
    if (link.scrollWidth > link.clientWidth) faults.push(`cut: ${link.textContent}`)
  for (const select of list('main select') as HTMLSelectElement[]) {
    const style = getComputedStyle(select)
    const text = select.selectedOptions[0]?.text ?? ''
    // The arrow takes about the height of the text.
    const taken = [style.paddingLeft, style.paddingRight, style.fontSize].map(Number.parseFloat)
    const space = taken.reduce((space, px) => space - px, select.clientWidth)
    if (measure(text, style) > space) faults.push(`cut: ${text}`)
  }

  const places = (all: HTMLElement[]) =>
    all.map(element => ({ element, place: element.getBoundingClientRect() }))
  const written = places(list('main :is(h2, [role=status])').filter(one => one.innerText !== ''))
  for (const { element: button, place } of places(list('main .button'))) {
    for (const { element: text, place: other } of written) {
      const isInColumn = other.left < place.right && other.right > place.left
      const gap = other.top < place.top ? place.top - other.bottom : other.top - place.bottom
      const isBeside = text.closest('dialog') === button.closest('dialog')
      if (isInColumn && isBeside && !text.contains(button) && gap < 8)
        faults.push(`${button.innerText} at ${text.innerText.slice(0, 60)}`)
    }
  }
  const root = document.querySelector('dialog[open]') ?? document.querySelector('main')
  const buttons = places(root ? list('button, .button, a.quiet-button', root) : [])
  for (const [at, { element, place }] of buttons.entries()) {
    for (const { element: other, place: near } of buttons.slice(at + 1)) {
      const isApart =
        near.left >= place.right - 1 ||
        near.right <= place.left + 1 ||
        near.top >= place.bottom - 1 ||
        near.bottom <= place.top + 1
      if (!isApart) faults.push(`${element.innerText} lies on ${other.innerText}`)
    }
  }

  const isChanged = (one: Element, part?: string) =>
    getComputedStyle(one, part).textTransform !== 'none'
  for (const bdi of document.querySelectorAll('main bdi')) {
    const parent = bdi.parentElement!
    const isFirst = parent.firstChild === bdi
    if (isChanged(bdi) || (isFirst && isChanged(parent, '::first-letter')))
      faults.push(`other letters: ${bdi.textContent}`)
  }
  return faults
}

/**
 * Lists the faults in forced colours: buttons and current items without an edge, places of the bar
 * at the bottom that differ, everything that moves, and focus that cannot be seen. Controls like
 * those in `checked` are not focused again.
 */
async function listForcedColorFaults({ page }: TestPage, checked: Set<string>): Promise<string[]> {
  const lines = await page.evaluate(listTransparentLines)
  const places: string[][] = []
  for (const forcedColors of [null, 'active', null] as const) {
    await page.emulateMedia({ forcedColors })
    places.push(await page.evaluate(listPlaces))
  }
  const [before = [], forced = [], again = []] = places
  // A time that ticks meanwhile differs from one of the two.
  const moved = forced.filter((place, at) => place !== before[at] && place !== again[at])
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
  // After a key, the browser shows the focus that a script sets, too.
  await page.keyboard.press('Tab')
  const focus = await page.evaluate(listUnseenFocus, [...checked])
  for (const kind of focus.kinds) checked.add(kind)
  return [...lines, ...faults, ...moved, ...focus.faults]
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
