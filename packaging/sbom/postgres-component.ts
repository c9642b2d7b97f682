import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { listPaths } from '../../src/database/embedded/postgres-package.ts'
import { hashBytes, type Component, type ComponentNode } from './document.ts'
import type { LockedPackage } from './lockfile.ts'
import { findNativeLicence } from './native-licences.ts'
import { toComponent } from './npm-components.ts'

/** Shared libraries that are not a part of Postgres, such as `lib/libssl.so.1.1`. */
const OTHER_LIBRARY = /^lib\/(?!libpq)[^/]+$/

/** Returns the component of the Postgres in `native`, with Postgres and each library inside. */
export function toPostgresNode(locked: LockedPackage, native: string): ComponentNode {
  const component = toComponent(locked, join(native, '..'))
  const [major, minor] = locked.version.split('.')
  const purl = `pkg:generic/postgresql@${major}.${minor}`
  const postgres: Component = {
    type: 'application',
    'bom-ref': purl,
    name: 'postgresql',
    version: `${major}.${minor}`,
    licenses: [{ license: { id: 'PostgreSQL' } }],
    copyright: 'Portions Copyright (c) 1996-2026, PostgreSQL Global Development Group',
    purl,
  }
  const libraries = listPaths(native)
    .filter(path => OTHER_LIBRARY.test(path))
    .map((path): Component => {
      const { ids, copyright } = findNativeLicence(basename(path))
      return {
        type: 'file',
        'bom-ref': `${component['bom-ref']}#${path}`,
        name: path,
        hashes: [hashBytes(readFileSync(join(native, path)))],
        licenses: ids.map(id => ({ license: { id } })),
        copyright,
      }
    })
  return {
    component: { ...component, components: [postgres, ...libraries] },
    dependsOn: [],
    isOpaque: true,
  }
}
