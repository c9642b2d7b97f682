import { useState } from 'preact/hooks'
import type { Card } from '../../../log/insights/schema.ts'
import { Cancel } from '../components/form.tsx'
import { Icon } from '../components/icon.tsx'
import { Loaded, MINUTE_MS, useQuery } from '../components/query.tsx'
import { toReaderText } from '../feed/reader-dates.ts'
import { toSince } from '../time-texts.ts'
import { request } from '../request.ts'
import { CardForm } from './card-form.tsx'
import { toTitle } from './card-texts.ts'
import { NumberCard, TopCard } from './counts.tsx'
import { toMatchesPath } from './links.ts'
import { Series } from './series.tsx'
import { QuietButton } from '../components/buttons.tsx'

interface CardOptions {
  project: string
  card: Card
  /** Moves the card by places; undefined if the member may not change it. */
  onMove: ((places: number) => void) | undefined
  onEdited(card: Card): void
  onDelete(): void
}

/** A card of the board: its title, its counts, and its settings. */
export function CardView({ project, card, onMove, onEdited, onDelete }: CardOptions) {
  const [isEditing, setEditing] = useState(false)
  // A new title is no new count.
  const { title: _, ...counted } = card
  const query = useQuery(
    JSON.stringify([project, counted]),
    () =>
      request('GET /api/projects/:projectId/insights/:cardId/result', {
        projectId: project,
        cardId: card.id,
      }),
    { everyMs: MINUTE_MS },
  )
  const title = toTitle(card)
  return (
    <>
      <header class="card-top">
        <div class="card-title">
          <h2>
            <bdi>{title}</bdi>
          </h2>
          <p class="item-details">
            <a href={toMatchesPath(project, card)}>
              {card.q === '' ? 'All events' : <bdi>{toReaderText(card.q)}</bdi>}
            </a>{' '}
            · {toSince(card.hours)}
          </p>
        </div>
        {onMove && (
          <button
            type="button"
            class="icon-button"
            aria-expanded={isEditing}
            aria-label={`Settings of ${title}`}
            onClick={() => setEditing(!isEditing)}
          >
            <Icon name="edit" size={18} />
          </button>
        )}
      </header>
      {isEditing ? (
        <>
          <Cancel.Provider value={() => setEditing(false)}>
            <CardForm
              project={project}
              card={card}
              onDone={edited => {
                setEditing(false)
                onEdited(edited)
              }}
            />
          </Cancel.Provider>
          <div class="actions">
            <QuietButton onClick={() => onMove?.(-1)}>Move earlier</QuietButton>
            <QuietButton onClick={() => onMove?.(1)}>Move later</QuietButton>
            <QuietButton class="quiet-button danger" onClick={onDelete}>
              Delete card
            </QuietButton>
          </div>
        </>
      ) : (
        <Loaded query={query}>
          {result => {
            if (result.kind === 'series') {
              return <Series {...{ project, card, title }} histogram={result.histogram} />
            }
            const View = card.kind === 'top' ? TopCard : NumberCard
            return <View {...{ project, card, title, result }} />
          }}
        </Loaded>
      )}
    </>
  )
}
