import { expect, test } from 'bun:test'
import { readTar, toTar, type TarFile } from '../../../src/database/embedded/tar.ts'

const FILES: TarFile[] = [
  { path: 'bin/postgres', bytes: Buffer.alloc(100_000, 'x') },
  { path: 'empty', bytes: Buffer.alloc(0) },
  { path: 'share/a block', bytes: Buffer.alloc(512, 'y') },
  { path: `${'d'.repeat(49)}/${'f'.repeat(50)}`, bytes: Buffer.from('the longest path') },
]

/** Yields pieces of `size` bytes. */
async function* cut(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

async function readAll(bytes: Buffer, size = 10_000): Promise<TarFile[]> {
  return Array.fromAsync(readTar(cut(bytes, size)))
}

test('an archive returns its files with any chunks; other programs read it, too', async () => {
  const tar = toTar(FILES)
  for (const size of [100, 512, 65_536, tar.length]) expect(await readAll(tar, size)).toEqual(FILES)
  const others = await new Bun.Archive(tar).files()
  expect([...others.keys()].sort()).toEqual(FILES.map(({ path }) => path).sort())
  for (const { path, bytes } of FILES) {
    expect(Buffer.from(await others.get(path)!.arrayBuffer()).equals(bytes)).toBe(true)
  }
})

test('an archive that is cut short or damaged is refused, as is a path that is too long', async () => {
  const tar = toTar(FILES)
  for (const length of [0, 511, 70_000, tar.length - 1_024]) {
    await expect(readAll(tar.subarray(0, length))).rejects.toThrow('The archive is incomplete')
  }
  tar[3]! ^= 1
  await expect(readAll(tar)).rejects.toThrow('damaged')
  expect(() => toTar([{ path: 'x'.repeat(101), bytes: Buffer.alloc(0) }])).toThrow('too long')
})
