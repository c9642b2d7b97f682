import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from './docs.ts'

const ADDED = [
  '.git',
  'node_modules',
  'dist',
  'data',
  '.env',
  'src/dashboard/built.ts',
  'clients/typescript/dist',
]

/** Copies the checkout to `folder` as a clone has it: not installed, and not built. */
export function copyCheckout(folder: string): void {
  const added = new Set(ADDED.map(name => join(ROOT, name)))
  cpSync(ROOT, folder, { recursive: true, filter: source => !added.has(source) })
}
