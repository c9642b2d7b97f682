import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { Board, Card } from '../../../log/insights/schema.ts'
import { showResult } from '../components/toast.tsx'
import type { Query } from '../components/query.tsx'
import { request } from '../request.ts'
import { CardView } from './card.tsx'
import { toTitle } from './card-texts.ts'

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
  const focused = useRef<Element | null>(null)
  const [status, setStatus] = useState('')
  const ids = cards.map(({ id }) => id)
  const toCards = (order: readonly string[]) =>
    order.flatMap(id => cards.find(card => card.id === id) ?? [])

  /** Puts all cards of the board in this order. */
  const orderCards = (cardIds: string[]) =>
    request('PUT /api/projects/:projectId/insights/order', { projectId: project, cardIds })

  async function move(id: string, places: number) {
    const order = ids.filter(one => one !== id)
    const at = ids.indexOf(id) + places
    if (at < 0 || at > order.length) return
    order.splice(at, 0, id)
    focused.current = document.activeElement
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
    if (focused.current instanceof HTMLElement) focused.current.focus()
    focused.current = null
  }, [ids.join()])
  useLayoutEffect(() => {
    const all = [...(list.current?.querySelectorAll<HTMLElement>('[data-card]') ?? [])]
    const card = all.find(({ dataset }) => dataset['card'] === added)
    card?.focus({ preventScroll: true })
    card?.scrollIntoView({ block: 'nearest' })
  }, [added])

  return (
    <>
      <ul ref={list} class="board" aria-label="Cards">
        {cards.map(card => (
          <li key={card.id} data-card={card.id} class="card" data-kind={card.kind} tabIndex={-1}>
            <CardView
              project={project}
              card={card}
              onMove={isEditor ? places => void move(card.id, places) : undefined}
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
