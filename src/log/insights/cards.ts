import { lockProject } from '../../access/organizations/projects.ts'
import { writeAudit, type Actor } from '../../access/audit/audit.ts'
import type { AuditAction } from '../../access/audit/actions.ts'
import { toArray } from '../../database/arrays.ts'
import type { Queryable, Tx } from '../../database/sql.ts'
import { Fault } from '../../base/errors.ts'
import { toSearchFilters } from '../events/search-schema.ts'
import { invalidField } from '../../http/validation.ts'
import { newId, parseId, toId } from '../../base/ids.ts'
import { MAX_CARDS, type Board, type Card, type CardEdit, type NewCard } from './schema.ts'

const DEFAULT_HOURS = 7 * 24

/** A change of a board, by a member; ids are uuids. */
interface BoardCall {
  actor: Actor
  organizationId: string
  projectId: string
}

/** Returns the board of a project, in its order. */
export async function getBoard(sql: Queryable, projectId: string): Promise<Board> {
  return { cards: await selectCards(sql, projectId) }
}

/** Returns one card. Throws `not_found`. */
export async function getCard(sql: Queryable, projectId: string, id: string): Promise<Card> {
  const [card] = await selectCards(sql, projectId, toCardUuid(id))
  if (!card) throw cardNotFound()
  return card
}

/**
 * Adds a card at the end of the board. Throws `conflict` for a full board, and `InvalidRequest` for
 * a bad search or a missing field.
 */
export async function addCard(tx: Tx, call: BoardCall, card: NewCard): Promise<Card> {
  const { projectId } = call
  const content = toContent(card)
  await lockProject(tx, projectId)
  const [{ n }] = await tx<[{ n: number }]>`
    select count(*)::int as n from insight_cards where project_id = ${projectId}
  `
  if (n >= MAX_CARDS) {
    throw new Fault('conflict', `A board has at most ${MAX_CARDS} cards. Delete one first.`)
  }
  const { id, uuid } = newId('crd')
  await tx`
    insert into insight_cards (
      project_id, id, position, kind, group_by, metadata_path, search, hours, title
    )
    values (
      ${projectId}, ${uuid}, ${n + 1}, ${content.kind}, ${content.groupBy}, ${content.metadataPath},
      ${content.q}, ${content.hours}, ${content.title}
    )
  `
  await audit(tx, call, 'insights.cardCreated', { target: id, kind: content.kind })
  return getCard(tx, projectId, id)
}

/** Changes a card. Throws `not_found`, and `InvalidRequest` like `addCard`. */
export async function editCard(
  tx: Tx,
  call: BoardCall,
  { id, edit }: { id: string; edit: CardEdit },
): Promise<Card> {
  const { projectId } = call
  await lockProject(tx, projectId)
  const content = toContent({ ...(await getCard(tx, projectId, id)), ...edit })
  await tx`
    update insight_cards set
      kind = ${content.kind}, group_by = ${content.groupBy}, metadata_path = ${content.metadataPath},
      search = ${content.q}, hours = ${content.hours}, title = ${content.title}
    where project_id = ${projectId} and id = ${toCardUuid(id)}
  `
  await audit(tx, call, 'insights.cardEdited', { target: id, kind: content.kind })
  return getCard(tx, projectId, id)
}

/** Deletes a card. The later ones move up. Throws `not_found`. */
export async function deleteCard(tx: Tx, call: BoardCall, id: string): Promise<void> {
  const { projectId } = call
  await lockProject(tx, projectId)
  const [deleted] = await tx<{ position: number }[]>`
    delete from insight_cards
    where project_id = ${projectId} and id = ${toCardUuid(id)}
    returning position
  `
  if (!deleted) throw cardNotFound()
  await tx`
    update insight_cards set position = position - 1
    where project_id = ${projectId} and position > ${deleted.position}
  `
  await audit(tx, call, 'insights.cardDeleted', { target: id })
}

/** Puts the cards in a new order. Throws `conflict` unless `cardIds` are those of the board. */
export async function reorderCards(
  tx: Tx,
  call: BoardCall,
  cardIds: readonly string[],
): Promise<Board> {
  const { projectId } = call
  await lockProject(tx, projectId)
  const { cards } = await getBoard(tx, projectId)
  const known = cards.map(({ id }) => id).toSorted()
  if (known.join() !== [...cardIds].toSorted().join()) {
    throw new Fault('conflict', 'The board has changed. Load it again, and repeat the change.')
  }
  await tx`
    update insight_cards c set position = o.position
    from unnest(${toArray(cardIds.map(toCardUuid))}::uuid[]) with ordinality as o (id, position)
    where c.project_id = ${projectId} and c.id = o.id
  `
  await audit(tx, call, 'insights.reordered', {})
  return getBoard(tx, projectId)
}

type Content = Omit<Card, 'id' | 'createdAt'>

/** Completes a valid card, and drops what its kind does not use. */
function toContent(card: NewCard): Content {
  const { kind, q = '', hours = DEFAULT_HOURS } = card
  const groupBy = kind === 'top' ? (card.groupBy ?? null) : null
  const metadataPath = groupBy === 'metadata' ? (card.metadataPath?.trim() ?? null) : null
  if (kind === 'top' && groupBy === null) throw invalidField('groupBy', 'required', 'Required')
  if (groupBy === 'metadata' && metadataPath === null)
    throw invalidField('metadataPath', 'required', 'Required')
  toSearchFilters({ q })
  return { kind, groupBy, metadataPath, q: q.trim(), hours, title: card.title?.trim() ?? null }
}

async function selectCards(sql: Queryable, projectId: string, cardId?: string): Promise<Card[]> {
  const rows = await sql<(Content & { uuid: string; created_at: Date })[]>`
    select
      -- A server of 0.3.0 can still add a table.
      c.id as uuid, case c.kind when 'table' then 'top' else c.kind end as kind, c.group_by as "groupBy", c.metadata_path as "metadataPath", c.search as q,
      c.hours, c.title, c.created_at
    from insight_cards c
    where c.project_id = ${projectId} ${cardId === undefined ? sql`` : sql`and c.id = ${cardId}`}
    order by c.position
  `
  return rows.map(({ uuid, created_at: at, ...content }) => ({
    id: toId('crd', uuid),
    ...content,
    createdAt: at.toISOString(),
  }))
}

/** Writes an entry of the audit log. It has no search, because that can name users. */
async function audit(
  tx: Tx,
  { actor, organizationId, projectId }: BoardCall,
  action: AuditAction,
  { target = toId('prj', projectId), ...details }: { target?: string; kind?: string },
): Promise<void> {
  await writeAudit(tx, actor, { action, organizationId, projectId, target, details })
}

/** Returns the uuid in a card's id. Throws `not_found`. */
function toCardUuid(id: string): string {
  const uuid = parseId('crd', id)
  if (!uuid) throw cardNotFound()
  return uuid
}

function cardNotFound(): Fault {
  return new Fault('not_found', 'No card of this project has this id')
}
