import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { packPostgres, readArchive } from '../../../src/database/embedded/postgres-package.ts'
import { makeFolder } from '../../support/scratch.ts'

const FILES = [
  { path: 'bin/postgres', bytes: Buffer.alloc(3_000_000, 'x') },
  { path: 'empty', bytes: Buffer.alloc(0) },
  { path: 'share/a block', bytes: Buffer.alloc(512, 'y') },
  { path: `share/${'f'.repeat(60)}`, bytes: Buffer.from('a long path') },
]

function makeNative(): string {
  const folder = makeFolder()
  writeFileSync(join(folder, 'package.json'), '{"version":"18.4.0"}')
  for (const { path, bytes } of FILES) {
    mkdirSync(join(folder, 'native', path, '..'), { recursive: true })
    writeFileSync(join(folder, 'native', path), bytes)
  }
  return join(folder, 'native')
}

async function readAll(archive: Uint8Array) {
  const files = await Array.fromAsync(readArchive(new Blob([new Uint8Array(archive)])))
  return files.map(({ path, bytes }) => ({ path, bytes: Buffer.from(bytes) }))
}

test('an archive returns its files; other programs read it, too', async () => {
  const { bytes } = await packPostgres(makeNative())
  expect(await readAll(bytes)).toEqual(FILES)
  const others = await new Bun.Archive(zstdDecompressSync(bytes)).files()
  for (const file of FILES) {
    expect(Buffer.from(await others.get(file.path)!.arrayBuffer()).equals(file.bytes)).toBe(true)
  }
})

test('the same files give the same bytes, at any time and in any folder', async () => {
  const [one, other] = [await packPostgres(makeNative()), await packPostgres(makeNative())]
  expect(one).toEqual(other)
  // An upgrade with the same Postgres unpacks nothing.
  expect(one.name).toBe('18.4.0-6f7c6781fe98.tar.zst')
})

test('an archive that is cut short or damaged is refused', async () => {
  const { bytes } = await packPostgres(makeNative())
  const tar = zstdDecompressSync(bytes)
  for (const length of [0, 511, 70_000, 3_000_832, tar.length - 1_024]) {
    await expect(readAll(zstdCompressSync(tar.subarray(0, length)))).rejects.toThrow('truncated')
  }
  for (const length of [0, 20, bytes.length >> 1]) {
    await expect(readAll(bytes.subarray(0, length))).rejects.toThrow()
  }
  tar[3]! ^= 1
  await expect(readAll(zstdCompressSync(tar))).rejects.toThrow('checksum')
})
