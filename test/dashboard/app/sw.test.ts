import { beforeAll, expect, test } from 'bun:test'

let shown: { tag: string; title: string }[] = []
let tabs: { visibilityState: string }[] = []
let badge = 0
const handlers = new Map<string, (event: object) => void>()

beforeAll(async () => {
  const without = (tag: string) => shown.filter(one => one.tag !== tag)
  const registration = {
    getNotifications: async ({ tag }: { tag: string }) =>
      shown
        .filter(one => one.tag === tag)
        .map(one => ({ ...one, close: () => (shown = without(tag)) })),
    async showNotification(title: string, options: { tag: string }) {
      await new Promise(resolve => setImmediate(resolve))
      shown = [...without(options.tag), { title, ...options }]
    },
  }
  const self = {
    ...{ SHELL: { build: 'b', files: [], pathPrefixes: [] }, registration },
    clients: { matchAll: async () => tabs },
    addEventListener: (name: string, handle: (event: object) => void) => handlers.set(name, handle),
  }
  Object.assign(globalThis, { self, location: { origin: 'https://tidings.example.com' } })
  Object.assign(navigator, { setAppBadge: async (count: number) => void (badge = count) })
  await import('../../../src/dashboard/app/sw.ts')
})

function push(title: string, tag: string, data: object, more = {}) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const json = () => ({ notification: { title, tag, data, ...more } })
  handlers.get('push')!({ data: { json }, waitUntil: resolve })
  return promise
}

test('attention §2 pushes that come together are shown one after another, and one closes others', async () => {
  await push('Disk', 'thread', { seq: 3 })
  await Promise.all([push('6 firing', 'storm', { seq: 9 }), push('5 firing', 'storm', { seq: 5 })])
  expect(shown.map(({ title }) => title)).toEqual(['Disk', '6 firing'])
  await push('All resolved', 'storm', { seq: 12, close: ['thread'] })
  expect(shown.map(({ title }) => title)).toEqual(['All resolved'])
})

test('a push sets the badge of the app unless a page is visible, which clears it', async () => {
  const seen = []
  for (const states of [[], ['hidden'], ['hidden', 'visible']]) {
    badge = 0
    tabs = states.map(visibilityState => ({ visibilityState }))
    await push('Disk', 'disk', {}, { app_badge: '3' })
    seen.push(badge)
  }
  expect(seen).toEqual([3, 3, 0])
})
