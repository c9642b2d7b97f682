import { compareVersions } from '../src/base/version.ts'
import { findOldestServer, isIn, listRows } from '../src/database/migrate.ts'
import { type Migration } from '../src/database/sql-files.ts'

/** A released version, as releases.json lists it. */
interface Release {
  /** Such as `0.2.0`. */
  version: string
  /** The day of the release, such as `2026-11-22`. */
  date: string
  /**
   * The oldest version whose servers keep working on the schema of this release. Absent if its
   * migrations are additive.
   */
  oldestServer?: string
  /** The SHA-256 of each migration that this release added, in hex, by its name. */
  migrations: Readonly<Record<string, string>>
}

/** Releases in their order, the oldest one first. */
export interface ReleaseIndex {
  releases: readonly Release[]
}

/** Lists the released migrations that are missing or changed in `migrations`. */
export function listBrokenReleases(
  { releases }: ReleaseIndex,
  migrations: readonly Migration[],
): string[] {
  const checksums = new Map(migrations.flatMap(one => Object.entries(listRows(one))))
  return releases.flatMap(({ version, migrations: released }) =>
    Object.entries(released).flatMap(([name, checksum]) => {
      const found = checksums.get(name)
      if (found === checksum) return []
      return [`${name} of ${version} ${found === undefined ? 'is missing' : 'was changed'}`]
    }),
  )
}

/**
 * Adds a release to the index, with the migrations that no earlier release has. Throws when the
 * version is not newer than all of the index, or when a released migration was changed.
 */
export function addRelease(
  index: ReleaseIndex,
  { version, date }: { version: string; date: string },
  migrations: readonly Migration[],
): ReleaseIndex {
  const broken = listBrokenReleases(index, migrations)
  if (broken.length > 0) {
    throw new Error(
      `Restore the files of sql/tables: ${broken.join(', ')}. Change them by a new file.`,
    )
  }
  const latest = index.releases.at(-1)
  if (latest && compareVersions(version, latest.version) <= 0) {
    throw new Error(`${version} is not newer than ${latest.version}. Set version in package.json.`)
  }
  const released = new Set(index.releases.flatMap(one => Object.keys(one.migrations)))
  const added = migrations.filter(one => !isIn(one, released))
  const oldestServer = added
    .map(findOldestServer)
    .filter(found => found !== undefined)
    .sort(compareVersions)
    .at(-1)
  const release = {
    version,
    date,
    ...(oldestServer !== undefined && { oldestServer }),
    migrations: Object.fromEntries(added.flatMap(one => Object.entries(listRows(one)))),
  }
  return { releases: [...index.releases, release] }
}
