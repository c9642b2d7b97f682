import manifest from '../../package.json' with { type: 'json' }
import { listBundledPackages } from './bundled-packages.ts'
import { toDocument, type ComponentNode } from './document.ts'
import { readLockfile, takePackage } from './lockfile.ts'
import { toNpmNodes } from './npm-components.ts'
import { toPostgresNode } from './postgres-component.ts'
import { toRuntimeNode } from './runtime-component.ts'

export interface PartsOptions {
  /** The folder of the checkout. */
  root: string
  /** The package of Postgres and its folder `native`. Undefined when the program has none. */
  postgres: { name: string; native: string } | undefined
}

/** The parts of the executable. */
export interface Parts {
  nodes: ComponentNode[]
  /** The `bom-ref` of each part that the program itself depends on. */
  dependsOn: string[]
}

/**
 * Lists the npm packages that the bundler takes into the program and its pages, the runtime and
 * Postgres. Throws when a part has no licence text, or one that does not go with AGPL-3.0-only.
 */
export function listParts({ root, postgres }: PartsOptions): Parts {
  const lockfile = readLockfile(root)
  const npmNodes = toNpmNodes(root, listBundledPackages(root), lockfile)
  const others = [
    toRuntimeNode(),
    ...(postgres ? [toPostgresNode(takePackage(lockfile, postgres.name), postgres.native)] : []),
  ]
  return {
    nodes: [...npmNodes, ...others],
    dependsOn: [...npmNodes.filter(isDirect), ...others].map(node => node.component['bom-ref']),
  }
}

/** Returns the SBOM of the executable. SOURCE_DATE_EPOCH sets its time. */
export function toSbom(parts: Parts): string {
  const { SOURCE_DATE_EPOCH: epoch } = process.env
  return toDocument({ ...parts, createdAt: epoch ? Number(epoch) : undefined })
}

/** Returns true when package.json names the package. */
function isDirect({ component: { group, name } }: ComponentNode): boolean {
  const full = group === undefined ? name : `${group}/${name}`
  return full in { ...manifest.dependencies, ...manifest.devDependencies }
}
