import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../package.json' with { type: 'json' }
import { REFERENCE_PACKAGE } from '../../src/dashboard/entries.ts'
import type { Component, ComponentNode } from './document.ts'
import { checkLicence } from './licence-texts.ts'
import { resolvePlace, takePackage, type LockedPackage, type Lockfile } from './lockfile.ts'

const PATCHES: Readonly<Record<string, string>> = manifest.patchedDependencies
const LICENCE_FILE = /^(licen[cs]e|copying)(\.(md|txt))?$/i

/**
 * Returns the components of the packages in `folders`, such as `node_modules/elysia`, with the
 * dependencies among them. Throws when bun.lock lacks a package, or a
 * package has no licence, none with a text, or one that does not go with AGPL-3.0-only.
 */
export function toNpmNodes(
  root: string,
  folders: readonly string[],
  lockfile: Lockfile,
): ComponentNode[] {
  const places = new Map(folders.map(folder => [toPlace(folder), folder]))
  const refs = new Map(
    [...places.keys()].map(place => [place, toPurl(takePackage(lockfile, place))]),
  )
  const nodes = [...places].map(([place, folder]) => {
    const locked = takePackage(lockfile, place)
    const dependsOn = locked.dependencies.flatMap(
      name => refs.get(resolvePlace(lockfile, place, name)) ?? [],
    )
    return {
      component: toComponent(locked, join(root, folder)),
      dependsOn,
      isOpaque: folder === REFERENCE_PACKAGE,
    }
  })
  // The same version can be installed at several places.
  return [...new Map(nodes.map(node => [node.component['bom-ref'], node])).values()]
}

/** Returns the component of a package that is installed in `folder`. */
export function toComponent(locked: LockedPackage, folder: string): Component {
  const { name, version, hash } = locked
  const purl = toPurl(locked)
  const [, group, rest = ''] = /^(?:(@[^/]+)\/)?(.+)$/.exec(name) ?? []
  const patch = PATCHES[`${name}@${version}`]
  return {
    type: 'library',
    'bom-ref': purl,
    ...(group !== undefined && { group }),
    name: rest,
    version,
    hashes: [hash],
    ...readLicence(name, folder),
    purl,
    ...(patch !== undefined && {
      pedigree: { patches: [{ type: 'unofficial' }], notes: `Changed by ${patch}.` },
    }),
  }
}

/** Returns `a/b` for `node_modules/a/node_modules/b`. */
function toPlace(folder: string): string {
  return folder.replace(/^node_modules\//, '').replaceAll('/node_modules/', '/')
}

function toPurl({ name, version }: LockedPackage): string {
  return `pkg:npm/${name.replace('@', '%40')}@${version}`
}

/**
 * Reads the licence of a package, with its text. A package without the file gets the standard text
 * of its licence later, and its author as the copyright.
 */
function readLicence(name: string, folder: string): Pick<Component, 'licenses' | 'copyright'> {
  const { license: id, author } = JSON.parse(
    readFileSync(join(folder, 'package.json'), 'utf8'),
  ) as { license?: string; author?: string | { name: string } }
  if (id === undefined) throw new Error(`${folder}/package.json names no licence.`)
  checkLicence(name, id)
  const license = / (OR|AND) /.test(id) ? { name: id } : { id }
  const file = readdirSync(folder).find(one => LICENCE_FILE.test(one))
  if (file !== undefined) {
    const text = { content: readFileSync(join(folder, file), 'utf8') }
    return { licenses: [{ license: { ...license, text } }] }
  }
  const holder = typeof author === 'object' ? author.name : author
  if (holder === undefined || 'name' in license) {
    throw new Error(`${name} has no file with its licence, and names no author.`)
  }
  return { licenses: [{ license }], copyright: `Copyright (c) ${holder}` }
}
