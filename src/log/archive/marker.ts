import type { Archive } from './archive.ts'
import { forgetLeftovers } from './files.ts'

/** Says which installation an archive belongs to. */
const MARKER = 'tidings-archive.json'

/**
 * Throws unless the place is the archive of this installation. A folder that is not mounted, and
 * the archive of another installation, are not. A new archive gets a marker. A restored
 * installation has a new id, so it does not delete files of the one that it was copied from.
 */
export async function checkPlace({ sql, store, isAdopting }: Archive): Promise<void> {
  const [row] = await sql<[{ id: string; has_files: boolean }]>`
    select
      archive_id as id, exists (select from archive_files f where f.state = 'current') as has_files
    from archive_runs
  `
  const object = await store.open(MARKER)
  if (object) {
    const bytes = await object.read(0, object.byteLength)
    await object.close()
    const { archive } = JSON.parse(new TextDecoder().decode(bytes)) as { archive?: string }
    if (archive === row.id) return
    if (!isAdopting) {
      throw new Error(
        `${store.location} is the archive of another installation, or of this one before a restore. Choose another place, or take it over with \`tidings archive --adopt\`.`,
      )
    }
    await forgetLeftovers(sql)
  } else if (row.has_files) {
    throw new Error(
      `${store.location} is not the archive of this installation: it has no file ${MARKER}. Check that the folder is mounted, or copy the archive there first.`,
    )
  }
  const upload = await store.create(MARKER)
  await upload.write(new TextEncoder().encode(`${JSON.stringify({ archive: row.id })}\n`))
  await upload.finish()
}
