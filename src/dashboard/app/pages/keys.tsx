import { useState } from 'preact/hooks'
import type { ProjectPageProps } from './props.ts'
import { readKeys, type NewKey } from '../keys/api.ts'
import { KeyItem } from '../keys/key-item.tsx'
import { CreateKeyForm } from '../keys/create-key-form.tsx'
import { SettingsLayout } from '../components/layout.tsx'
import { FirstEventCommand } from '../components/first-event-command.tsx'
import { InlineForm } from '../components/inline-form.tsx'
import { PagedList } from '../components/paged-list.tsx'
import { SecretOnce } from '../components/secret-once.tsx'
import { t, toRich } from '../locales/translate.tsx'
import { toProjectPath } from '../paths.ts'
import { isAllowed } from '../session.ts'
import { usePages } from '../components/use-pages.ts'

/** The API keys of a project. */
export default function KeysPage({ account, project }: ProjectPageProps) {
  return (
    <SettingsLayout
      account={account}
      project={project}
      path={toProjectPath('keys', project)}
      title={t('common.apiKeys')}
    >
      <h1 class="page-title">{t('common.apiKeys')}</h1>
      <div class="settings">
        {isAllowed(account, project, 'admin') ? (
          <Keys project={project} />
        ) : (
          <p class="page-lead">{t('keys.adminsOnly')}</p>
        )}
      </div>
    </SettingsLayout>
  )
}

function Keys({ project }: { project: string }) {
  const pages = usePages(project, cursor => readKeys(project, cursor))
  const [made, setMade] = useState<NewKey>()

  function show(key: NewKey) {
    setMade(key)
    pages.reload()
  }

  return (
    <>
      <p class="page-lead">
        {toRich({ key: 'keys.lead', elements: { docs: text => <a href="/docs/api">{text}</a> } })}
      </p>
      <div class="primary-action">
        <InlineForm isPrimary action={t('keys.create')}>
          {close => (
            <CreateKeyForm
              project={project}
              onCreated={key => {
                close()
                show(key)
              }}
            />
          )}
        </InlineForm>
      </div>
      {made && (
        <SecretOnce
          title={toRich({ key: 'keys.newKey', values: { name: <bdi>{made.name}</bdi> } })}
          label={t('keys.apiKey')}
          secret={made.key}
          onDone={() => setMade(undefined)}
        >
          {made.scopes.includes('events:write') && <FirstEventCommand apiKey={made.key} />}
        </SecretOnce>
      )}
      <PagedList pages={pages} empty={<p class="note">{t('keys.none')}</p>}>
        {key => (
          <KeyItem
            key={key.id}
            project={project}
            apiKey={key}
            onCreated={show}
            onChanged={pages.reload}
          />
        )}
      </PagedList>
    </>
  )
}
