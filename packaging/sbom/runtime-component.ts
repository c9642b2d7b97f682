import type { Component, ComponentNode, Licence } from './document.ts'

/**
 * The libraries inside the runtime, by their names in `process.versions`, with the licences that
 * the runtime's own documentation names. Other names there stand for a version of Node.js that the
 * runtime imitates, or for tools of its build.
 */
const LIBRARIES: Readonly<Record<string, Licence | undefined>> = {
  ares: { license: { id: 'MIT' } },
  boringssl: undefined,
  icu: undefined,
  libarchive: undefined,
  libdeflate: { license: { id: 'MIT' } },
  lolhtml: { license: { id: 'BSD-3-Clause' } },
  lshpack: undefined,
  mimalloc: { license: { id: 'MIT' } },
  picohttpparser: { license: { name: 'Perl License or MIT License' } },
  sqlite: undefined,
  tinycc: { license: { name: 'LGPL v2.1' } },
  usockets: { license: { id: 'Apache-2.0' } },
  uwebsockets: { license: { id: 'Apache-2.0' } },
  webkit: { license: { name: 'LGPL-2' } },
  zlib: { license: { id: 'Zlib' } },
  zstd: { license: { name: 'BSD License or GPLv2' } },
}

/** Returns the component of the runtime that compiles the program, and is a part of it. */
export function toRuntimeNode(): ComponentNode {
  const version = process.versions['bun'] ?? ''
  const purl = `pkg:github/oven-sh/bun@bun-v${version}`
  const component: Component = {
    type: 'platform',
    'bom-ref': purl,
    name: 'bun',
    version,
    licenses: [{ license: { id: 'MIT' } }],
    purl,
    externalReferences: [{ type: 'license', url: 'https://bun.com/docs/project/license' }],
    components: Object.entries(LIBRARIES).flatMap(([name, licence]) =>
      toLibrary(purl, name, licence),
    ),
  }
  return { component, dependsOn: [], isOpaque: true }
}

function toLibrary(purl: string, name: string, licence: Licence | undefined): Component[] {
  const version = process.versions[name]
  if (version === undefined) return []
  return [
    {
      type: 'library',
      'bom-ref': `${purl}#${name}`,
      name,
      version,
      ...(licence && { licenses: [licence] }),
    },
  ]
}
