import type { Account } from '../../../accounts/schema.ts'
import { confirmed } from '../parts/confirm.tsx'
import { Field, Form } from '../parts/form.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { Reveal } from '../parts/reveal.tsx'
import { Sure } from '../parts/sure.tsx'
import { tell } from '../parts/undo.tsx'
import { useAnswer } from '../parts/use-answer.ts'
import { toFeedPath } from '../paths.ts'
import { isAtLeast, loadSession } from '../session.ts'
import { createProject, deleteProject, editProject, readProject } from './calls.ts'
import { parseDays } from './days.ts'

type Own = Account['organizations'][number]

/** The projects of an organization, and what its admins do with them. */
export function Projects({ own }: { own: Own }) {
  const mayEdit = isAtLeast(own.role, 'admin')
  return (
    <section class="part" aria-labelledby="projects">
      <h2 id="projects">Projects</h2>
      {own.projects.length === 0 && <p class="aside">None yet</p>}
      <ul class="items">
        {own.projects.map(({ id, name }) => (
          <li key={id}>
            <div class="item-what">
              <a href={toFeedPath(id)}>
                <bdi>{name}</bdi>
              </a>
            </div>
            {mayEdit && (
              <Reveal action="Settings" label={`Settings of ${name}`}>
                {close => <Settings own={own} project={id} onDone={close} />}
              </Reveal>
            )}
          </li>
        ))}
      </ul>
      {mayEdit && (
        <Reveal action="Create a project">
          {close => (
            <Form
              action="Create"
              send={value => createProject(own.id, value('name'))}
              onDone={() => {
                close()
                void loadSession()
              }}
            >
              <Field name="name" label="Name" autocomplete="off" />
            </Form>
          )}
        </Reveal>
      )}
    </section>
  )
}

function Settings({ own, project, onDone }: { own: Own; project: string; onDone(): void }) {
  const asked = useAnswer(project, () => readProject(project))
  return (
    <Loaded of={asked}>
      {({ name, keepDays, head }) => (
        <>
          <Form
            action="Save"
            send={value =>
              confirmed(() =>
                editProject(project, {
                  name: value('name'),
                  keepDays: parseDays(value('keepDays')),
                }),
              )
            }
            onDone={() => {
              onDone()
              void loadSession()
            }}
          >
            <Field name="name" label="Name" autocomplete="off" value={name} />
            <Field
              name="keepDays"
              label="Days for which events are kept"
              autocomplete="off"
              value={String(keepDays ?? '')}
              hint="Older ones are deleted for good. Nothing here keeps them for ever."
              isOptional
            />
          </Form>
          {own.role === 'owner' && (
            <Sure
              action="Delete this project"
              title={
                <>
                  Delete <bdi>{name}</bdi>?
                </>
              }
              lead={`Its ${head.toLocaleString()} events, its API keys and its webhooks go for good. Whoever sends events to it is refused at once.`}
              yes="Delete for good"
              send={() => deleteProject(project)}
              onDone={() => {
                tell({ said: `${name} is deleted.` })
                void loadSession()
              }}
            />
          )}
        </>
      )}
    </Loaded>
  )
}
