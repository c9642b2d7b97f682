import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Board, Card } from '../../../log/insights/schema.ts'
import { showResult } from '../components/toast.tsx'
import type { Query } from '../components/use-query.ts'
import { request } from '../request.ts'
import { CardView } from './card.tsx'
import { toTitle } from './card-texts.ts'
import { useMoving } from './use-moving.ts'

interface BoardOptions {
  project: string
  cards: readonly Card[]
  query: Pick<Query<Board>, 'change' | 'refetch'>
  isEditor: boolean
  /** The card that was just added. */
  added: string | undefined
}

/** The cards of a project, which an editor can change and move. */
export function BoardView({ project, cards, query, isEditor, added }: BoardOptions) {
  const list = useRef<HTMLUListElement>(null)
  const moved = useRef<string>(undefined)
  const [status, setStatus] = useState('')
  const ids = cards.map(({ id }) => id)
  const toCards = (order: readonly string[]) =>
    order.flatMap(id => cards.find(card => card.id === id) ?? [])
  const { moving, over, toHandle } = useMoving({ ids, onMove: save })

  /** Puts all cards of the board in this order. */
  const orderCards = (cardIds: string[]) =>
    request('PUT /api/projects/:projectId/insights/order', { projectId: project, cardIds })

  async function save(order: string[], id: string) {
    moved.current = id
    query.change(() => ({ cards: toCards(order) }))
    const card = cards.find(one => one.id === id)
    if (card) {
      const place = order.indexOf(id) + 1
      setStatus(`${toTitle(card)} is now at place ${place} of ${order.length}.`)
    }
    if (!showResult(await orderCards(order))) void query.refetch()
  }

  async function remove(card: Card) {
    const place = { projectId: project, cardId: card.id }
    const result = await request('DELETE /api/projects/:projectId/insights/:cardId', place)
    const isDeleted = showResult(result, {
      message: `${toTitle(card)} deleted.`,
      undo: async () => {
        const { id: _, ...former } = card
        const input = { projectId: project, ...former }
        const again = await request('POST /api/projects/:projectId/insights', input)
        if (!again.ok) return again
        const { id } = again.data
        return orderCards(ids.map(one => (one === card.id ? id : one)))
      },
      onUndone: () => void query.refetch(),
    })
    if (isDeleted)
      query.change(({ cards }) => ({ cards: cards.filter(({ id }) => id !== card.id) }))
  }

  // A browser takes the focus away from an element that is moved in the page.
  useLayoutEffect(() => {
    if (moved.current === undefined) return
    findCard(moved.current)?.querySelector<HTMLElement>('.move-handle')?.focus()
    moved.current = undefined
  }, [ids.join()])
  useLayoutEffect(() => {
    const card = added === undefined ? undefined : findCard(added)
    card?.focus({ preventScroll: true })
    card?.scrollIntoView({ block: 'nearest' })
  }, [added])

  function findCard(id: string): HTMLElement | undefined {
    const all = [...(list.current?.querySelectorAll<HTMLElement>('[data-card]') ?? [])]
    return all.find(({ dataset }) => dataset['card'] === id)
  }

  return (
    <>
      {isEditor && (
        <p id="move-help" hidden>
          Drag it to another card, or press the arrow keys.
        </p>
      )}
      <ul ref={list} class="board" aria-label="Cards">
        {cards.map(card => (
          <li
            key={card.id}
            data-card={card.id}
            class="card"
            data-kind={card.kind}
            data-moving={card.id === moving ? '' : undefined}
            data-over={card.id === over ? '' : undefined}
            tabIndex={-1}
          >
            <CardView
              project={project}
              card={card}
              handle={isEditor ? toHandle(card.id) : undefined}
              onEdited={edited =>
                query.change(({ cards }) => ({
                  cards: cards.map(one => (one.id === edited.id ? edited : one)),
                }))
              }
              onDelete={() => void remove(card)}
            />
          </li>
        ))}
      </ul>
      <p class="visually-hidden" role="status">
        {status}
      </p>
    </>
  )
}
