import manifest from '../../package.json' with { type: 'json' }
import { listBundledPackages } from './bundled-packages.ts'
import { toDocument, type ComponentNode } from './document.ts'
import { readLockfile, takePackage } from './lockfile.ts'
import { toNpmNodes } from './npm-components.ts'
import { toPostgresNode } from './postgres-component.ts'
import { toRuntimeNode } from './runtime-component.ts'

export interface SbomOptions {
  /** The folder of the checkout. */
  root: string
  /** The package of Postgres and its folder `native`. Undefined when the program has none. */
  postgres: { name: string; native: string } | undefined
}

/**
 * Returns the SBOM of the executable: the npm packages that the bundler takes into the program and
 * its pages, the runtime and Postgres. SOURCE_DATE_EPOCH sets its time.
 */
export function toSbom({ root, postgres }: SbomOptions): string {
  const lockfile = readLockfile(root)
  const npmNodes = toNpmNodes(root, listBundledPackages(root), lockfile)
  const others = [
    toRuntimeNode(),
    ...(postgres ? [toPostgresNode(takePackage(lockfile, postgres.name), postgres.native)] : []),
  ]
  const { SOURCE_DATE_EPOCH: epoch } = process.env
  return toDocument({
    nodes: [...npmNodes, ...others],
    dependsOn: [...npmNodes.filter(isDirect), ...others].map(node => node.component['bom-ref']),
    createdAt: epoch ? Number(epoch) : undefined,
  })
}

/** Returns true when package.json names the package. */
function isDirect({ component: { group, name } }: ComponentNode): boolean {
  const full = group === undefined ? name : `${group}/${name}`
  return full in { ...manifest.dependencies, ...manifest.devDependencies }
}
