import { createReadStream, existsSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { UUID } from '../../base/ids.ts'
import { ensureFolder, findOwner, makePrivate, syncFolder } from '../../base/private-files.ts'
import type { Pool } from '../../database/pool.ts'
import { readErasedNames, type ErasedName, type ErasureKey } from './erased-users.ts'

// The list of erased users outside the database, so that a restore of an older backup can apply it.
// Each line is one name: the erasure key, the erasure, the project, u for a user_id or a for an
// alias, the hash, the time, and the API key or -.

const LINE = new RegExp(
  `^(${UUID}) (${UUID}) (${UUID}) ([ua]) ([0-9a-f]{64}) (\\d{4}-[0-9T:.-]+Z) (${UUID}|-)$`,
)
const PAGE_SIZE = 500

/** Returns the file with the list of erased users in DATA_DIR. */
export function toErasedFile(dataDir: string): string {
  return join(dataDir, 'erased-users')
}

/**
 * Appends names to the list, and waits until they are on disk. Creates the file with mode 0600, for
 * the owner of DATA_DIR.
 */
export async function appendErasedNames(file: string, names: readonly ErasedName[]): Promise<void> {
  if (names.length === 0) return
  ensureFolder(dirname(file))
  const isNew = !existsSync(file)
  const handle = await open(file, 'a', 0o600)
  try {
    if (isNew) makePrivate(handle.fd, findOwner(dirname(file)))
    // The first line feed ends a line that a crash has cut off.
    await handle.appendFile(`\n${names.map(toLine).join('\n')}\n`)
    await handle.sync()
    if (isNew) syncFolder(dirname(file))
  } finally {
    await handle.close()
  }
}

/** Yields the names in the list. Skips damaged lines. A missing file is an empty list. */
export async function* readErasedFile(file: string): AsyncGenerator<ErasedName> {
  if (!existsSync(file)) return
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const [, erasureKeyId, erasedUserId, projectId, kind, hash, erasedAt, keyId] =
      LINE.exec(line) ?? []
    if (!erasureKeyId || !erasedUserId || !projectId || !hash || !erasedAt || !keyId) continue
    if (Number.isNaN(Date.parse(erasedAt))) continue
    yield {
      erasureKeyId,
      erasedUserId,
      projectId,
      isUserId: kind === 'u',
      hash,
      erasedAt: new Date(erasedAt),
      keyId: keyId === '-' ? null : keyId,
    }
  }
}

/** Appends the names that the database has and the file lacks, such as those of other servers. */
export async function completeErasedFile(
  pool: Pick<Pool, 'run'>,
  key: ErasureKey,
  file: string,
): Promise<void> {
  const known = new Map<string, Set<string>>()
  for await (const { erasureKeyId, erasedUserId, hash } of readErasedFile(file)) {
    if (erasureKeyId !== key.id) continue
    const hashes = known.get(erasedUserId) ?? new Set()
    known.set(erasedUserId, hashes.add(hash))
  }
  const rows = await pool.run(
    sql => sql<{ id: string; n: number }[]>`
      select erased_user_id as id, count(*)::int as n from erased_names group by erased_user_id
    `,
  )
  const missing = rows.filter(({ id, n }) => (known.get(id)?.size ?? 0) < n).map(({ id }) => id)
  for (let at = 0; at < missing.length; at += PAGE_SIZE) {
    const ids = missing.slice(at, at + PAGE_SIZE)
    const names = await pool.run(sql => readErasedNames(sql, key, ids))
    await appendErasedNames(file, names)
  }
}

function toLine(name: ErasedName): string {
  const { erasureKeyId, erasedUserId, projectId, isUserId, hash, erasedAt, keyId } = name
  return [
    ...[erasureKeyId, erasedUserId, projectId, isUserId ? 'u' : 'a', hash],
    ...[erasedAt.toISOString(), keyId ?? '-'],
  ].join(' ')
}
