import { createHash } from 'node:crypto'
import { VERSION } from '../../src/base/version.ts'

/** The extension of an SBOM in CycloneDX's JSON form. */
export const SBOM_EXTENSION = '.cdx.json'

const LICENCE = 'AGPL-3.0-only'

/** A part of the program, as CycloneDX describes it. */
export interface Component {
  type: 'application' | 'library' | 'platform' | 'file'
  /** Unique within the document. */
  'bom-ref': string
  group?: string
  name: string
  version?: string
  description?: string
  hashes?: Hash[]
  licenses?: Licence[]
  copyright?: string
  purl?: string
  externalReferences?: { type: 'license'; url: string }[]
  pedigree?: { patches: { type: 'unofficial' }[]; notes: string }
  /** The parts that the publisher of this component built into it. */
  components?: Component[]
}

export interface Hash {
  alg: 'SHA-256' | 'SHA-512'
  /** In lower-case hexadecimal digits. */
  content: string
}

/** An SPDX id, or another name of a licence. */
export interface Licence {
  license: ({ id: string } | { name: string }) & { text?: { content: string } }
}

/** A component, and the `bom-ref` of each component that it depends on. */
export interface ComponentNode {
  component: Component
  dependsOn: readonly string[]
  /** True when the publisher bundled the component, and its parts are not all known. */
  isOpaque?: boolean
}

export interface DocumentOptions {
  nodes: readonly ComponentNode[]
  /** The `bom-ref` of each component that the program itself depends on. */
  dependsOn: readonly string[]
  /** The time of the document in seconds since 1970. Without it, the document has no time. */
  createdAt: number | undefined
}

/** Returns the SBOM of the program in the form of CycloneDX 1.6. Equal options give equal bytes. */
export function toDocument({ nodes, dependsOn, createdAt }: DocumentOptions): string {
  const sorted = nodes.toSorted((one, other) =>
    one.component['bom-ref'] < other.component['bom-ref'] ? -1 : 1,
  )
  const purl = `pkg:generic/tidings@${VERSION}`
  const content = {
    metadata: {
      ...(createdAt !== undefined && { timestamp: new Date(createdAt * 1000).toISOString() }),
      lifecycles: [{ phase: 'build' }],
      tools: { components: [{ type: 'application', name: 'tidings-compile', version: VERSION }] },
      component: {
        type: 'application',
        'bom-ref': purl,
        name: 'tidings',
        version: VERSION,
        licenses: [{ license: { id: LICENCE } }],
        purl,
      },
    },
    components: sorted.map(({ component }) => component),
    dependencies: [
      { ref: purl, dependsOn: dependsOn.toSorted() },
      ...sorted.map(node => ({
        ref: node.component['bom-ref'],
        dependsOn: node.dependsOn.toSorted(),
      })),
    ],
    compositions: [
      { aggregate: 'complete', assemblies: [purl] },
      {
        aggregate: 'incomplete',
        assemblies: sorted.filter(node => node.isOpaque).map(node => node.component['bom-ref']),
      },
    ],
  }
  const head = {
    $schema: 'http://cyclonedx.org/schema/bom-1.6.schema.json',
    bomFormat: 'CycloneDX',
    specVersion: '1.6',
    serialNumber: toSerialNumber(JSON.stringify(content)),
    version: 1,
  }
  return `${JSON.stringify({ ...head, ...content }, null, 2)}\n`
}

/** Returns a UUID that is made of a hash of the content, as version 8 of RFC 9562 allows. */
function toSerialNumber(content: string): string {
  const hex = createHash('sha256').update(content).digest('hex')
  return `urn:uuid:${[hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')}`
}

/** Returns the hash of a file's bytes. */
export function hashBytes(bytes: Uint8Array): Hash {
  return { alg: 'SHA-256', content: createHash('sha256').update(bytes).digest('hex') }
}
