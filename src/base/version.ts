import manifest from '../../package.json' with { type: 'json' }

/** The version of this program. */
export const VERSION = manifest.version

/** The URL of the source repository. */
export const SOURCE_URL = manifest.repository

declare const TIDINGS_REVISION: string
/** The commit of the sources, or '' unless `bun run compile` was told it. */
export const REVISION = typeof TIDINGS_REVISION === 'string' ? TIDINGS_REVISION : ''

/** Compares versions of releases, such as `0.10.0`. Negative if `a` is older than `b`. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map(version => version.split('.').map(Number))
  return [0, 1, 2].map(at => left![at]! - right![at]!).find(difference => difference !== 0) ?? 0
}
