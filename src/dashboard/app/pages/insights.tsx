import { useLocation } from 'preact-iso'
import { useState } from 'preact/hooks'
import { Cancel } from '../components/form.tsx'
import { ProjectLayout } from '../components/layout.tsx'
import { Loaded, useRoute } from '../components/query.tsx'
import { CardForm } from '../insights/card-form.tsx'
import { BoardView } from '../insights/board.tsx'
import { toProjectPath } from '../paths.ts'
import { isAllowed } from '../session.ts'
import type { ProjectPageProps } from './props.ts'
import { QuietButton } from '../components/buttons.tsx'

const MAX_CARDS = 12
/** The fields with which a new card begins. */
const NEW_CARD = { kind: 'series', groupBy: null, metadataPath: null, title: null } as const
const DEFAULT_HOURS = 168

/** The insights of a project. The query can have a search that becomes a card. */
export default function InsightsPage({ account, project }: ProjectPageProps) {
  const { query, route } = useLocation()
  const wanted = query['add']
  const [isAdding, setAdding] = useState(false)
  const [added, setAdded] = useState<string>()
  const board = useRoute('GET /api/projects/:projectId/insights', { projectId: project })
  const isEditor = isAllowed(account, project, 'member')
  const path = toProjectPath('insights', project)

  function close() {
    setAdding(false)
    if (wanted !== undefined) route(path, true)
  }

  return (
    <ProjectLayout account={account} project={project} at="insights" title="Insights">
      <Loaded query={board}>
        {({ cards }) => {
          const isFull = cards.length >= MAX_CARDS
          const isOpen = isEditor && !isFull && (isAdding || wanted !== undefined)
          return (
            <>
              {isEditor && !isOpen && !isFull && cards.length > 0 && (
                <QuietButton onClick={() => setAdding(true)}>Add a card</QuietButton>
              )}
              {isEditor && isFull && (
                <p class="hint">There is room for {MAX_CARDS} cards. Delete one to add another.</p>
              )}
              {isOpen && (
                <section class="add-card" aria-label="Add a card">
                  <Cancel.Provider value={close}>
                    <CardForm
                      key={wanted}
                      project={project}
                      card={{
                        ...NEW_CARD,
                        q: wanted ?? '',
                        hours: Number(query['hours']) || DEFAULT_HOURS,
                      }}
                      onDone={card => {
                        board.change(({ cards }) => ({ cards: [...cards, card] }))
                        setAdded(card.id)
                        close()
                      }}
                    />
                  </Cancel.Provider>
                </section>
              )}
              {cards.length === 0 ? (
                !isOpen && (
                  <div class="empty-state">
                    <h2>No cards yet</h2>
                    <p>
                      Cards show counts of events over time, by channel, tag, user or metadata.{' '}
                      {isEditor
                        ? 'Add one here, or search in the feed and press “Add to insights”.'
                        : 'Members can add them.'}
                    </p>
                    {isEditor && (
                      <p>
                        <button type="button" class="button" onClick={() => setAdding(true)}>
                          Add a card
                        </button>
                      </p>
                    )}
                  </div>
                )
              ) : (
                <BoardView
                  project={project}
                  cards={cards}
                  query={board}
                  isEditor={isEditor}
                  added={added}
                />
              )}
            </>
          )
        }}
      </Loaded>
    </ProjectLayout>
  )
}
