import { expect, test } from 'bun:test'
import { createSemaphore } from '../../src/base/semaphore.ts'

test('a key has its own slots, and its callers are served in order', async () => {
  const slots = createSemaphore({ perKey: 2 })
  const first = await slots.acquire('a')
  await slots.acquire('a')
  const order: string[] = []
  const third = slots.acquire('a').then(release => (order.push('third'), release))
  const fourth = slots.acquire('a').then(release => (order.push('fourth'), release))
  expect(await slots.acquire('b')).toBeDefined()
  expect(order).toEqual([])
  expect([slots.running, slots.waiting]).toEqual([3, 2])
  first?.()
  first?.()
  const release = await third
  expect(order).toEqual(['third'])
  release?.()
  expect(await fourth).toBeDefined()
  expect([slots.running, slots.waiting]).toEqual([3, 0])
})

test('waiting is limited by time, by a signal, and by the number of callers', async () => {
  const slots = createSemaphore({ perKey: 1, maxWaiting: 1 })
  const release = await slots.acquire('a')
  expect(await slots.acquire('a', { maxWaitMs: 1 })).toBeUndefined()
  const controller = new AbortController()
  const { signal } = controller
  const waiting = slots.acquire('a', { signal })
  expect(await slots.acquire('a')).toBeUndefined()
  await expect(slots.run('a', async () => {})).rejects.toMatchObject({ code: 'unavailable' })
  controller.abort()
  expect(await waiting).toBeUndefined()
  expect(await slots.acquire('a', { signal })).toBeUndefined()
  release?.()
  expect([slots.running, slots.waiting]).toEqual([0, 0])
  expect(await slots.acquire('a')).toBeDefined()
})

test('reliability §7 a key with many shared slots does not delay one with few', async () => {
  const slots = createSemaphore({ total: 2 })
  const order: string[] = []
  let atOnce = 0
  let mostAtOnce = 0
  const run = (key: string) =>
    slots.run(key, async () => {
      order.push(key)
      mostAtOnce = Math.max(mostAtOnce, ++atOnce)
      await Promise.resolve()
      atOnce--
    })
  await Promise.all([...Array.from({ length: 20 }, () => run('greedy')), run('ada'), run('bob')])
  expect(mostAtOnce).toBe(2)
  expect(order).toHaveLength(22)
  expect(order.indexOf('ada')).toBeLessThan(6)
  expect(order.indexOf('bob')).toBeLessThan(6)
})

test('of keys with equally many slots, the one that held slots for less time goes first', async () => {
  const slots = createSemaphore({ total: 1 })
  const order: string[] = []
  const realNow = performance.now
  let nowMs = realNow.call(performance)
  performance.now = () => nowMs
  const run = (key: string, ms: number) =>
    slots.run(key, async () => {
      order.push(key)
      await Promise.resolve()
      nowMs += ms
    })
  try {
    await Promise.all([
      run('a', 40),
      run('a', 40),
      run('a', 40),
      run('b', 5),
      run('b', 5),
      run('b', 5),
    ])
    expect(order.join('')).toBe('abbbaa')
  } finally {
    performance.now = realNow
  }
})

test('callers of all keys together that may wait are limited', async () => {
  const slots = createSemaphore({ total: 1, maxWaiting: 2, maxWaitingTotal: 3 })
  const release = await slots.acquire('a')
  const waiting = ['a', 'a', 'b'].map(key => slots.acquire(key))
  expect([slots.hasRoom('a'), slots.hasRoom('b')]).toEqual([false, false])
  expect(await slots.acquire('b')).toBeUndefined()
  release?.()
  await Promise.all(waiting.map(async one => (await one)?.()))
  expect([slots.running, slots.waiting, slots.hasRoom('b')]).toEqual([0, 0, true])
})

test('with isNewestFirst, many new keys delay no later one, and the last ones give way to it', async () => {
  const slots = createSemaphore({ total: 1, maxWaitingTotal: 3, isNewestFirst: true })
  const known = await slots.acquire('known')
  const order: string[] = []
  const wait = async (key: string) => {
    const release = await slots.acquire(key)
    order.push(release ? key : `${key} refused`)
    return release
  }
  const waits = ['known', 'a', 'b', 'c', 'd'].map(wait)
  await Promise.resolve()
  expect(slots.waiting).toBe(3)
  known?.()
  for (const each of waits.toReversed()) (await each)?.()
  // A key that holds a slot would go last, and so would the oldest of those without one.
  expect(order).toEqual(['known refused', 'a refused', 'd', 'c', 'b'])
})

test('a key at its own limit leaves a shared slot to others, and later gets one', async () => {
  const slots = createSemaphore({ total: 3, perKey: 2 })
  const [first] = [await slots.acquire('a'), await slots.acquire('a')]
  const other = await slots.acquire('b')
  const mine = slots.acquire('a')
  const third = slots.acquire('c')
  other?.()
  expect(await third).toBeDefined()
  expect([slots.running, slots.waiting]).toEqual([3, 1])
  first?.()
  expect(await mine).toBeDefined()
})

test('failing work releases its slot', async () => {
  const slots = createSemaphore({ total: 1 })
  const failed = slots.run('ada', () => Promise.reject(new Error('no')))
  const next = slots.run('ada', async () => 'done')
  await expect(failed).rejects.toThrow('no')
  expect(await next).toBe('done')
  expect(await slots.run('bob', async () => 'again')).toBe('again')
})

test('a key that held slots for long gets fewer while another one is active', async () => {
  const slots = createSemaphore({ total: 4, perKey: 3, perHeavyKey: 1 })
  const realNow = performance.now
  let nowMs = realNow.call(performance)
  performance.now = () => nowMs
  try {
    const long = await slots.acquire('heavy')
    nowMs += 1_500
    const order: string[] = []
    const start = (key: string) => slots.acquire(key).then(release => (order.push(key), release!))
    long?.()
    // Alone, it has all of its slots.
    const three = await Promise.all([start('heavy'), start('heavy'), start('heavy')])
    const waiting = [start('heavy'), start('heavy')]
    ;(await start('light'))()
    for (const release of three.slice(0, 2)) release()
    await Promise.resolve()
    expect(order).toEqual(['heavy', 'heavy', 'heavy', 'light'])
    three[2]?.()
    const next = await waiting[0]
    expect(slots.running).toBe(1)
    // The other key is no longer active, so the limit rises.
    nowMs += 3_000
    const more = start('heavy')
    next?.()
    await Promise.all([...waiting, more])
    expect(slots.running).toBe(2)
  } finally {
    performance.now = realNow
  }
})
