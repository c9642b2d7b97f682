import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Hash } from './document.ts'

/** A package in bun.lock. */
export interface LockedPackage {
  name: string
  version: string
  /** The names of the packages that it depends on, peers included. */
  dependencies: string[]
  /** The hash of the archive that the registry serves. */
  hash: Hash
}

/** The packages by their place, such as `elysia` or `@elysiajs/swagger/@scalar/themes`. */
export type Lockfile = ReadonlyMap<string, LockedPackage>

type Entry = [
  nameAndVersion: string,
  registry: string,
  info: Partial<Record<(typeof KINDS)[number], Record<string, string>>>,
  integrity: string,
]

const KINDS = ['dependencies', 'optionalDependencies', 'peerDependencies'] as const
const INTEGRITY = /^sha512-(.+)$/

/** Reads bun.lock in the folder `root`. */
export function readLockfile(root: string): Lockfile {
  // The file is JSON with trailing commas.
  const text = readFileSync(join(root, 'bun.lock'), 'utf8').replace(/,(\s*[}\]])/g, '$1')
  const { packages } = JSON.parse(text) as { packages: Record<string, Entry> }
  return new Map(
    Object.entries(packages).map(([place, [nameAndVersion, , info, integrity]]) => {
      const at = nameAndVersion.lastIndexOf('@')
      const [, base64] = INTEGRITY.exec(integrity) ?? []
      if (base64 === undefined) throw new Error(`${nameAndVersion} has no SHA-512 in bun.lock.`)
      return [
        place,
        {
          name: nameAndVersion.slice(0, at),
          version: nameAndVersion.slice(at + 1),
          dependencies: KINDS.flatMap(kind => Object.keys(info[kind] ?? {})),
          hash: { alg: 'SHA-512', content: Buffer.from(base64, 'base64').toString('hex') },
        },
      ]
    }),
  )
}

/** Returns the package at a place. Throws when there is none. */
export function takePackage(lockfile: Lockfile, place: string): LockedPackage {
  const locked = lockfile.get(place)
  if (!locked) throw new Error(`bun.lock has no package at ${place}. Run bun install.`)
  return locked
}

/** Returns the place of the package that `name` means at `place`: the nearest one outwards. */
export function resolvePlace(lockfile: Lockfile, place: string, name: string): string {
  const parent = listParents(place).find(one => lockfile.has(`${one}/${name}`))
  return parent === undefined ? name : `${parent}/${name}`
}

/** Returns `a/@b/c` and `a` for the place `a/@b/c`. */
function listParents(place: string): string[] {
  const names = place.match(/(?:@[^/]+\/)?[^/]+/g) ?? []
  return names.map((_, index) => names.slice(0, names.length - index).join('/'))
}
