import { useState } from 'preact/hooks'
import type { ProjectPageProps } from './props.ts'
import { KeyItem } from '../keys/key-item.tsx'
import { CreateKeyForm, type NewKey } from '../keys/create-key-form.tsx'
import { ProjectLayout } from '../components/layout.tsx'
import { PagedList, usePages } from '../components/pages.tsx'
import { SecretOnce } from '../components/secret-once.tsx'
import { isAllowed } from '../session.ts'
import { MINUTE_MS } from '../components/query.tsx'
import { CodeBlock } from '../components/copy-button.tsx'

/** The API keys of a project. */
export default function KeysPage({ account, project }: ProjectPageProps) {
  return (
    <ProjectLayout account={account} project={project} at="keys" title="API Keys">
      <div class="settings">
        {isAllowed(account, project, 'admin') ? (
          <Keys project={project} />
        ) : (
          <p class="page-lead">
            Applications send and read events with API keys. Only admins can see and create them.
            Ask an admin of your organization for a key.
          </p>
        )}
      </div>
    </ProjectLayout>
  )
}

function Keys({ project }: { project: string }) {
  const pages = usePages(
    'GET /api/projects/:projectId/keys',
    { projectId: project },
    { everyMs: MINUTE_MS },
  )
  const [made, setMade] = useState<NewKey>()

  function show(key: NewKey) {
    setMade(key)
    void pages.refetch()
  }

  return (
    <>
      <p class="page-lead">
        Applications send and read events with an API key. Create one key per application, so that
        you can see its usage and revoke it separately. <a href="/docs/api">API reference</a>
      </p>
      <div class="primary-action">
        <CreateKeyForm project={project} onCreated={show} />
      </div>
      {made && (
        <SecretOnce
          title={
            <>
              New key: <bdi>{made.name}</bdi>
            </>
          }
          label="API key"
          secret={made.key}
          onDone={() => setMade(undefined)}
        >
          {made.scopes.includes('events:write') && <FirstEventCommand apiKey={made.key} />}
        </SecretOnce>
      )}
      <PagedList
        pages={pages}
        empty={<p class="note">No API keys yet. Create one to send events.</p>}
      >
        {key => (
          <KeyItem
            key={key.id}
            project={project}
            apiKey={key}
            onCreated={show}
            onChanged={() => void pages.refetch()}
          />
        )}
      </PagedList>
    </>
  )
}

/** The shortest command that sends an event. Its double quotes work in every shell. */
function FirstEventCommand({ apiKey }: { apiKey: string }) {
  const lines = [
    `curl ${location.origin}/v1/channels/hello`,
    `  -H "Authorization: Bearer ${apiKey}"`,
    '  -d "🎉 It works"',
  ]
  return <CodeBlock label="In a terminal" text={lines.join(' \\\n')} />
}
