import { useState } from 'preact/hooks'
import { Field, Form } from '../components/form.tsx'
import { PagedList, usePages } from '../components/pages.tsx'
import { Moment } from '../components/timestamp.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { showResult } from '../components/toast.tsx'
import { request } from '../request.ts'
import type { Data } from '../routes.ts'
import { QuietButton } from '../components/buttons.tsx'
import { Section } from '../components/item.tsx'
import { UserName } from './avatar.tsx'

const CHANGES = {
  added: 'was added',
  removed: 'was removed',
  'moved from': 'was moved here from',
  'moved to': 'was moved to',
} as const

interface AliasesOptions {
  project: string
  user: Data<'GET /api/projects/:projectId/users/:userId'>
  mayEdit: boolean
  onChanged(): void
}

/** The aliases of a user, with their history. Members can add, remove and move them. */
export function Aliases({ project, user, mayEdit, onChanged }: AliasesOptions) {
  const { userId, aliases } = user
  const [taken, setTaken] = useState<{ alias: string; owner: string }>()

  /** Adds an alias to a user; with `from`, moves it from that user. */
  const addAlias = (to: string, alias: string, from?: string) =>
    request('POST /api/projects/:projectId/users/:userId/aliases', {
      projectId: project,
      userId: to,
      alias,
      ...(from !== undefined && { from }),
    })

  async function add(alias: string) {
    const result = await addAlias(userId, alias)
    if (result.ok || result.failure.code !== 'conflict') return result
    // If the alias belongs to another user, it can be moved.
    const place = { projectId: project, userId: alias }
    const owner = await request('GET /api/projects/:projectId/users/:userId', place)
    const isTaken =
      owner.ok &&
      owner.data.userId !== userId &&
      owner.data.aliases.some(one => one.alias === alias)
    setTaken(isTaken ? { alias, owner: owner.data.userId } : undefined)
    return result
  }

  async function move({ alias, owner }: { alias: string; owner: string }, close: () => void) {
    const result = await addAlias(userId, alias, owner)
    setTaken(undefined)
    const isMoved = showResult(result, {
      message: 'Alias moved.',
      undo: () => addAlias(owner, alias, userId),
      onUndone: onChanged,
    })
    if (!isMoved) return
    close()
    onChanged()
  }

  async function remove(alias: string) {
    const place = { projectId: project, userId, alias }
    const removal = request('DELETE /api/projects/:projectId/users/:userId/aliases/:alias', place)
    const isRemoved = showResult(await removal, {
      message: 'Alias removed.',
      undo: () => addAlias(userId, alias),
      onUndone: onChanged,
    })
    if (isRemoved) onChanged()
  }

  return (
    <Section id="aliases" title="Aliases">
      {aliases.length === 0 && <p class="note">No aliases yet</p>}
      <ul class="items">
        {aliases.map(({ alias, since }) => (
          <li key={alias}>
            <div class="item-main">
              <bdi>{alias}</bdi>
              <p class="item-details">
                added <Moment at={since} />
              </p>
            </div>
            {mayEdit && (
              <QuietButton aria-label={`Remove ${alias}`} onClick={() => remove(alias)}>
                Remove
              </QuietButton>
            )}
          </li>
        ))}
      </ul>
      {mayEdit && (
        <InlineForm action="Add an alias">
          {close => (
            <>
              <Form
                action="Add"
                send={value => add(value('alias'))}
                onDone={() => {
                  close()
                  onChanged()
                }}
              >
                <Field
                  name="alias"
                  label="Alias"
                  hint="Another ID of this user, such as an e-mail address. Past and future events with this ID count for this user."
                />
              </Form>
              {taken && (
                <p class="alias-taken">
                  This is an alias of <bdi>{taken.owner}</bdi>.{' '}
                  <QuietButton onClick={() => move(taken, close)}>Move it to this user</QuietButton>
                </p>
              )}
            </>
          )}
        </InlineForm>
      )}
      <details class="history">
        <summary>History</summary>
        <History key={aliases.map(({ alias }) => alias).join()} project={project} userId={userId} />
      </details>
    </Section>
  )
}

function History({ project, userId }: { project: string; userId: string }) {
  const pages = usePages('GET /api/projects/:projectId/users/:userId/aliases/history', {
    projectId: project,
    userId,
    limit: 20,
  })
  return (
    <PagedList pages={pages} empty={<p class="note">No changes yet</p>}>
      {({ at, alias, change, other, person }) => (
        <li key={`${at} ${alias} ${change}`}>
          <bdi>{alias}</bdi> {CHANGES[change]}{' '}
          {change.startsWith('moved') &&
            (other === null ? (
              'an erased user'
            ) : (
              <UserName project={project} userId={other} />
            ))}{' '}
          {person && (
            <>
              by <bdi>{person.name}</bdi>
            </>
          )}{' '}
          · <Moment at={at} />
        </li>
      )}
    </PagedList>
  )
}
