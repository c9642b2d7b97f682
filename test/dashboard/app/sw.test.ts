import { expect, test } from 'bun:test'

test('attention §2 pushes that come together are shown one after another, and one closes others', async () => {
  let shown: { tag: string; title: string }[] = []
  const without = (tag: string) => shown.filter(one => one.tag !== tag)
  const handlers = new Map<string, (event: object) => void>()
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
    clients: { matchAll: async () => [] },
    addEventListener: (name: string, handle: (event: object) => void) => handlers.set(name, handle),
  }
  Object.assign(globalThis, { self, location: { origin: 'https://tidings.example.com' } })
  await import('../../../src/dashboard/app/sw.ts')
  const push = (title: string, tag: string, data: object) => {
    const { promise, resolve } = Promise.withResolvers<void>()
    const json = () => ({ notification: { title, tag, data } })
    handlers.get('push')!({ data: { json }, waitUntil: resolve })
    return promise
  }
  await push('Disk', 'thread', { seq: 3 })
  await Promise.all([push('6 firing', 'storm', { seq: 9 }), push('5 firing', 'storm', { seq: 5 })])
  expect(shown.map(({ title }) => title)).toEqual(['Disk', '6 firing'])
  await push('All resolved', 'storm', { seq: 12, close: ['thread'] })
  expect(shown.map(({ title }) => title)).toEqual(['All resolved'])
})
