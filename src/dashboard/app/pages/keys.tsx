import { useState } from 'preact/hooks'
import type { ProjectPage } from './props.ts'
import { readKeys, type NewKey } from '../keys/calls.ts'
import { KeyItem } from '../keys/item.tsx'
import { MakeKey } from '../keys/make.tsx'
import { Unfold } from '../parts/act.tsx'
import { SettingsFrame } from '../parts/frame.tsx'
import { HelloCurl } from '../parts/hello-curl.tsx'
import { Listed } from '../parts/listed.tsx'
import { Once } from '../parts/once.tsx'
import { toProjectPath } from '../paths.ts'
import { isAllowed } from '../session.ts'
import { usePages } from '../users/use-pages.ts'

/** The keys with which applications post and read events. */
export default function KeysPage({ account, project }: ProjectPage) {
  return (
    <SettingsFrame
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
          <p class="lead-in">
            Applications post and read events with keys. Admins of your organization see and make
            them: ask one of them for a key.
          </p>
        )}
      </div>
    </SettingsFrame>
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
      <p class="lead-in">
        Applications post and read events with a key. Give each its own: then you see who is busy,
        and can end one without the others. <a href="/docs">API reference</a>
      </p>
      <p class="main-act">
        <Unfold isMain name="make" open={open} onOpen={setOpen}>
          Make a key
        </Unfold>
      </p>
      {open && <MakeKey project={project} onMade={show} />}
      {made && (
        <Once
          title={
            <>
              The key of <bdi>{made.name}</bdi>
            </>
          }
          label="API key"
          secret={made.key}
          onDone={() => setMade(undefined)}
        >
          {made.scopes.includes('events:write') && <HelloCurl apiKey={made.key} />}
        </Once>
      )}
      <Listed pages={pages} nothing={<p class="aside">There is no key yet.</p>}>
        {key => (
          <KeyItem
            key={key.id}
            project={project}
            apiKey={key}
            onMade={show}
            onChanged={pages.readAgain}
          />
        )}
      </Listed>
    </>
  )
}
