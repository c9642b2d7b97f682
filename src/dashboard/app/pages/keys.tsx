import { useState } from 'preact/hooks'
import type { ProjectPageProps } from './props.ts'
import { readKeys, type NewKey } from '../keys/api.ts'
import { KeyItem } from '../keys/key-item.tsx'
import { CreateKeyForm } from '../keys/create-key-form.tsx'
import { DisclosureButton } from '../components/action-button.tsx'
import { SettingsLayout } from '../components/layout.tsx'
import { FirstEventCommand } from '../components/first-event-command.tsx'
import { PagedList } from '../components/paged-list.tsx'
import { SecretOnce } from '../components/secret-once.tsx'
import { toProjectPath } from '../paths.ts'
import { isAllowed } from '../session.ts'
import { usePages } from '../components/use-pages.ts'

/** The keys with which applications post and read events. */
export default function KeysPage({ account, project }: ProjectPageProps) {
  return (
    <SettingsLayout
      account={account}
      project={project}
      path={toProjectPath('keys', project)}
      title="API Keys"
    >
      <h1 class="page-title">API Keys</h1>
      <div class="settings">
        {isAllowed(account, project, 'admin') ? (
          <Keys project={project} />
        ) : (
          <p class="page-lead">
            Applications post and read events with keys. Admins of your organization see and make
            them: ask one of them for a key.
          </p>
        )}
      </div>
    </SettingsLayout>
  )
}

function Keys({ project }: { project: string }) {
  const pages = usePages(project, cursor => readKeys(project, cursor))
  const [made, setMade] = useState<NewKey>()
  const [open, setOpen] = useState<'make'>()

  function show(key: NewKey) {
    setOpen(undefined)
    setMade(key)
    pages.readAgain()
  }

  return (
    <>
      <p class="page-lead">
        Applications post and read events with a key. Give each its own: then you see who is busy,
        and can end one without the others. <a href="/docs/api">API reference</a>
      </p>
      <p class="primary-action">
        <DisclosureButton isPrimary name="make" open={open} onOpen={setOpen}>
          Make a key
        </DisclosureButton>
      </p>
      {open && <CreateKeyForm project={project} onCreated={show} />}
      {made && (
        <SecretOnce
          title={
            <>
              The key of <bdi>{made.name}</bdi>
            </>
          }
          label="API key"
          secret={made.key}
          onDone={() => setMade(undefined)}
        >
          {made.scopes.includes('events:write') && <FirstEventCommand apiKey={made.key} />}
        </SecretOnce>
      )}
      <PagedList pages={pages} empty={<p class="note">There is no key yet.</p>}>
        {key => (
          <KeyItem
            key={key.id}
            project={project}
            apiKey={key}
            onCreated={show}
            onChanged={pages.readAgain}
          />
        )}
      </PagedList>
    </>
  )
}
