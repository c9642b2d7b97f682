import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { HAS_BROWSER } from '../support/clients/chromium.ts'
import { PROJECT } from '../support/fakes/api.ts'
import { until } from '../support/until.ts'
import { openDashboard, type Dashboard } from '../support/worlds/dashboard.ts'

const FROM = '2026-11-10T00:00:00Z'
const TO = '2026-11-11T00:00Z'

describe.skipIf(!HAS_BROWSER)('dashboard.md §3 the histogram', () => {
  let dashboard: Dashboard
  beforeAll(async () => {
    dashboard = await openDashboard()
  })
  afterAll(() => dashboard[Symbol.asyncDispose]())

  /** Opens a day with an event in each of `hours`, in bars of an hour. */
  async function look(query = `?from=${FROM}&to=${TO}`, hours = [3, 10, 10, 22], hasClock = false) {
    const opened = await dashboard.openFaked({
      ...{ hasClock, isNew: hasClock },
      prepare: api => {
        const at = (hour: number) => `2026-11-10T${String(hour).padStart(2, '0')}:30:00.000Z`
        api.emit(...hours.map(hour => ({ title: `At ${hour}`, timestamp: at(hour) })))
        api.emit({ title: 'Now' })
      },
    })
    const { page } = opened
    await page.goto(`${dashboard.url}/p/${PROJECT}${query}`)
    const chart = page.getByRole('region', { name: 'Events over time' })
    const titles = async () => (await page.locator('article h2').allTextContents()).join()
    const toRange = () => {
      const { searchParams } = new URL(page.url())
      return [searchParams.get('from'), searchParams.get('to')]
    }
    return { ...opened, chart, titles, toRange }
  }

  test('counts the events of the search, and describes them in words and in a table', async () => {
    await using it = await look()
    await it.chart.getByText('4 events').waitFor()
    const button = it.chart.getByRole('button', { name: 'Show as table' })
    await button.click()
    await it.chart.getByRole('table').waitFor()
    expect(await it.chart.locator('tbody td').allTextContents()).toEqual(['1', '2', '1'])
    await it.chart.locator('.counts-table').focus()
    await it.page.keyboard.press('Escape')
    await it.chart.locator('.counts-table').waitFor({ state: 'detached' })
    expect(await button.evaluate(element => element === document.activeElement)).toBe(true)
  })

  test('has an axis, and bars as high as the square root of their count', async () => {
    await using it = await look(undefined, [3, 10, 10, 10, 10, 22], true)
    await it.page.clock.setFixedTime('2026-11-20T12:00:00Z')
    await it.page.reload()
    await it.chart.getByText('6 events').waitFor()
    // The bars are a script of their own.
    await it.chart.locator('.bars-axis span').first().waitFor()
    const axis = await it.chart.locator('.bars-axis span').allTextContents()
    expect(axis).toEqual(['4', '0', '10 Nov, 0:00', '11 Nov, 0:00'])
    const path = await it.chart.locator('.bars path').getAttribute('d')
    expect(path?.match(/V[\d.]+H/g)).toEqual(['V48.0H', 'V0.0H', 'V48.0H'])
    // It stays in one line with the count and the choice of the range.
    const [bars, count, range] = await Promise.all(
      ['.bars', '.histogram-summary', '.segmented'].map(async name => {
        const { y, height } = (await it.chart.locator(name).boundingBox())!
        return y + height / 2
      }),
    )
    expect([count, range].map(at => Math.abs((at ?? 0) - (bars ?? 0)) < 3)).toEqual([true, true])
  })

  test('its bars have room, also beside an open event, or are behind a button', async () => {
    await using it = await look()
    await it.chart.locator('.bars-axis span').first().waitFor()
    const widths = [(await it.chart.locator('.bars').boundingBox())?.width]
    await it.page.locator('article').first().click()
    await it.page.locator('#panel-title').waitFor()
    for (const width of [1024, 1440, 1600, 1900]) {
      await it.page.setViewportSize({ width, height: 800 })
      widths.push((await it.chart.locator('.bars').boundingBox())?.width)
    }
    const hasRoom = (width: number | undefined) => width === undefined || width >= 128
    expect([widths, widths.every(hasRoom)]).toEqual([widths, true])
    expect(widths.at(-1)).toBeDefined()
  })

  test('its failure does not cut the focus of its button', async () => {
    await using it = await look()
    it.api.on('GET /api/projects/:id/histogram', () => ({
      ...{ status: 503, code: 'unavailable', error: 'The server is busy' },
    }))
    await it.page.reload()
    const retry = it.chart.getByRole('button', { name: 'Retry' })
    await retry.focus()
    for (const keys of ['Tab', 'Shift+Tab']) await it.page.keyboard.press(keys)
    for (const width of [390, 1280]) {
      await it.page.setViewportSize({ width, height: 800 })
      const isCut = await retry.evaluate(button => {
        const { outlineOffset, outlineWidth } = getComputedStyle(button)
        const ring = parseFloat(outlineOffset) + parseFloat(outlineWidth)
        const { left, right, top } = button.getBoundingClientRect()
        const place = button.parentElement!
        const box = place.getBoundingClientRect()
        const isClipped = getComputedStyle(place).overflow !== 'visible'
        return (
          top - ring < document.querySelector('.top-bar')!.getBoundingClientRect().bottom ||
          (isClipped && (left - ring < box.left || right + ring > box.right))
        )
      })
      expect([width, isCut]).toEqual([width, false])
    }
  })

  test('a handle or a bar sets the time range, and its chip removes it', async () => {
    await using it = await look()
    await it.chart.getByText('4 events').waitFor()
    const { x, y, width, height } = (await it.chart.locator('.bars').boundingBox())!
    const bar = (at: number) => x + ((at + 0.5) * width) / 24
    await it.page.mouse.move(x + 6, y + height / 3)
    await it.page.mouse.down()
    await it.page.mouse.move(bar(9), y + height / 3, { steps: 4 })
    await it.chart.getByText('3 events').waitFor()
    await it.page.mouse.up()
    await until(async () => (await it.titles()) === 'At 22,At 10,At 10')
    expect(it.toRange()[1]).toBe('2026-11-11T00:00Z')
    await it.page.goBack()
    await it.chart.getByText('4 events').waitFor()
    await it.page.mouse.click(bar(10), y + height / 3)
    await until(async () => (await it.titles()) === 'At 10,At 10')
    expect(it.toRange()).toEqual(['2026-11-10T10:00Z', '2026-11-10T11:00Z'])
    // The summary is of the whole new range, although the pointer is still over its bars.
    await it.chart.getByText('2 events').waitFor()
    await it.page.getByRole('button', { name: /^Remove time/ }).click()
    await until(async () => (await it.titles()).startsWith('Now'))
    expect(it.toRange()).toEqual([null, null])
    expect(it.problems).toEqual([])
  })

  test('the keyboard sets the range: arrows, then Enter; Escape discards it', async () => {
    await using it = await look()
    await it.chart.getByText('4 events').waitFor()
    const from = it.chart.getByRole('slider', { name: 'From' })
    const to = it.chart.getByRole('slider', { name: 'To' })
    await from.focus()
    for (let n = 0; n < 5; n++) await it.page.keyboard.press('ArrowRight')
    await it.chart.getByText('3 events').waitFor()
    await it.page.keyboard.press('Escape')
    await it.chart.getByText('4 events').waitFor()
    for (let n = 0; n < 5; n++) await it.page.keyboard.press('ArrowRight')
    await to.focus()
    for (let n = 0; n < 3; n++) await it.page.keyboard.press('ArrowLeft')
    expect(await to.getAttribute('aria-valuetext')).toContain('10 Nov')
    await it.page.keyboard.press('Enter')
    await until(async () => (await it.titles()) === 'At 10,At 10')
    expect(it.toRange()).toEqual(['2026-11-10T05:00Z', '2026-11-10T21:00Z'])
  })

  test('a range that ends now is set by one press, and removed by another', async () => {
    await using it = await look('', undefined, true)
    await it.page.getByRole('button', { name: '24 h', exact: true }).click()
    await until(async () => (await it.titles()) === 'Now')
    expect(it.toRange()).toEqual(['24h', null])
    await it.page.getByText('Last 24 hours').waitFor()
    await it.page.reload()
    await until(async () => (await it.titles()) === 'Now')
    await it.page.getByRole('button', { name: '24 h', exact: true }).click()
    await until(async () => (await it.titles()).includes('At 3'))
    expect(it.toRange()).toEqual([null, null])
    // The list goes further back than the chart, whose count says so on narrow screens, too.
    await it.chart.getByText(/in 2[34]h/).waitFor()
    // It ends at each moment, in the list and in the chart.
    await it.page.goto(`${dashboard.url}/p/${PROJECT}?from=1h`)
    await until(async () => (await it.titles()) === 'Now')
    await it.chart.getByText('1 event', { exact: true }).waitFor()
    // The bars move on below a selection, which stays, with the focus.
    const route = 'GET /api/projects/:id/histogram'
    const count = it.api.handler(route)
    it.api.on(route, (body, url) => {
      const { data }: any = count(body, url)
      return { data: { ...data, stepMs: 150_000 } }
    })
    await it.page.reload()
    await it.chart.getByText('1 event', { exact: true }).waitFor()
    const slider = it.chart.getByRole('slider', { name: 'From' })
    await slider.press('ArrowRight')
    const label = await slider.getAttribute('aria-valuetext')
    await it.page.clock.fastForward('00:02:00')
    await until(async () => (await slider.getAttribute('aria-valuetext')) !== label)
    expect(await slider.inputValue()).toBe('1')
    expect(await slider.evaluate(element => element === document.activeElement)).toBe(true)
    await it.page.keyboard.press('Escape')
    await it.page.clock.fastForward('01:00:01')
    await until(async () => (await it.titles()) === '')
    await it.chart.getByText('0 events').waitFor()
  })
})
