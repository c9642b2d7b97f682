import { listFirstEvents, listVerifications, type Snippet } from './languages.ts'
import { sample } from './operation.ts'
import { markup, type Markup } from './html.ts'

/** The same in several languages, one of which is shown; it takes no script to choose. */
function tabs(group: string, title: string, snippets: readonly Snippet[]): Markup {
  return markup`<fieldset class="tabs">
<legend>${title}</legend>
<div class="tab-list">${snippets.map(
    ({ id, language }, at) =>
      markup`<label><input type="radio" name="${group}" value="${id}"${at === 0 && markup` checked`}><span>${language}</span></label>`,
  )}</div>
${snippets.map(({ language, text }) => markup`<div class="tab">${sample(language, text)}</div>`)}
</fieldset>`
}

export function firstEventTabs(baseUrl: string): Markup {
  return tabs('first-event', 'Send your first event', listFirstEvents(baseUrl))
}

/** Where a reader who is signed in gets a key; the script of the page fills it. */
export function keyOffer(): Markup {
  return markup`<div id="key-offer" class="key-offer" hidden></div>`
}

export function identifyGuide(baseUrl: string): Markup {
  const identify = `curl ${baseUrl}/v1/identify \\
  -H 'Authorization: Bearer YOUR_API_KEY' \\
  -H 'Content-Type: application/json' \\
  -d '{"user_id": "user_123", "aliases": ["ada@example.com", "cus_42"], "properties": {"plan": "pro"}}'`
  const event = `curl ${baseUrl}/v1/events \\
  -H 'Authorization: Bearer YOUR_API_KEY' \\
  -H 'Content-Type: application/json' \\
  -d '{"channelName": "payments", "title": "Upgraded", "userId": "cus_42"}'`
  return markup`<div class="pair">
<div class="prose">
<p>An event belongs to somebody when it carries a <code>userId</code>. The same person has many names: an id in
your database, an e-mail address, a customer number at the payment provider. Name them once with
<code>identify</code>, and whichever name an event carries, it is found under all of them.</p>
<ul>
<li><code>user_id</code> is the name that stays. Everything else is an alias of it.</li>
<li>Call it as often as you like: aliases are added, and properties replaced when you send them.</li>
<li>An alias belongs to one person at a time. One that is taken is reported in the answer and left where it is;
people move it by hand on the person’s page.</li>
<li>Events may come first: they are found under the name as soon as it is known.</li>
</ul>
</div>
<div class="samples">${sample('Say who it is', identify)}${sample('An event of theirs, by any name', event)}</div>
</div>`
}

export function webhooksGuide(): Markup {
  const body = `{
  "type": "event.created",
  "timestamp": "2026-01-02T03:00:00.000Z",
  "data": {
    "id": "evt_…", "title": "New payment", "channelName": "payments",
    "project": { "id": "prj_…", "name": "Web shop" },
    "organization": { "id": "org_…", "name": "Analytical Engines" }
  }
}`
  return markup`<div class="pair">
<div class="prose">
<p>A webhook tells another system of each event, by a <code>POST</code> to an address of yours. Admins make one under
<b>Settings → Webhooks</b>. Its secret is shown once; a lost one is rotated.</p>
<ul>
<li>Every event is attempted at least once and retried for three days: after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 14 h,
20 h and 24 h. Any <code>2xx</code> within 15 s is a success.</li>
<li>A delivery may come twice, with the same <code>webhook-id</code>: remember the ids that you have dealt with. It may
also come out of order.</li>
<li><code>410</code> says that nobody wants it any more, and disables the webhook. Redirects are not followed.</li>
<li>Slack, Discord, Telegram and ntfy take a body of their own: choose the preset.</li>
</ul>
<p>Signatures follow Standard Webhooks (standardwebhooks.com). Verify the body as it arrived,
before anything parses it, and refuse what is older than five minutes. The command
<code>tidings webhook verify</code> says what is wrong with a signature.</p>
</div>
<div class="samples">${sample('What arrives', body)}</div>
</div>
${tabs('verification', 'Verify a signature', listVerifications())}`
}

export function pushGuide(): Markup {
  return markup`<div class="prose">
<p>Open <a href="/notifications">Notifications</a> on the device that should tell you, and switch them on there. Each
device has its own switch; each person chooses per channel, and has quiet hours. More than 10 notifications from one
channel in a minute become one that counts the rest; each person can turn that off, per project and channel.</p>
<ul>
<li><b>iPhone and iPad</b>, from iOS 16.4: notifications need the installed app. In Safari tap the share button, then
<b>Add to Home Screen</b>, open Tidings from there, and switch them on.</li>
<li><b>Android</b>: they work in the browser. Installed from its menu, Tidings also has an icon with a badge.</li>
<li><b>Desktop</b>: Chrome, Edge, Firefox and Safari. The browser must be running, and the system must not be in a mode
that silences it.</li>
</ul>
<p>Browsers allow notifications on secure pages alone: <code>https</code>, or <code>localhost</code> while you try it.
<b>Send a test</b> shows what the push service answered. When somebody was not told of an event, its page says why.</p>
</div>`
}

export function selfHostingGuide(baseUrl: string): Markup {
  return markup`<div class="pair">
<div class="prose">
<p>Tidings is one program. Without <code>DATABASE_URL</code> it runs its own Postgres under <code>DATA_DIR</code>; with
it, any PostgreSQL from version 15 on serves, and several servers may share one.</p>
<ul>
<li>Put a proxy with a certificate in front, pass the <code>Host</code> header and WebSocket upgrades on, and say so:
<code>BASE_URL</code> is the address that people type, <code>TRUSTED_PROXIES</code> the proxy’s network.</li>
<li>Keep <code>APP_SECRET</code>, which seals the secrets in the database, apart from your backups. It is made in
<code>DATA_DIR</code> unless you set it.</li>
<li>Back up with <code>tidings backup</code>, while the server runs; <code>tidings restore</code> fills an empty
server.</li>
<li><code>tidings doctor</code> checks all of it and names the remedy. <code>/healthz</code> and <code>/readyz</code>
are for your supervisor, and <code>METRICS_PORT</code> for Prometheus.</li>
<li>Update by replacing the program: migrations run at the start.</li>
</ul>
</div>
<div class="samples">${sample('Is all well?', `tidings doctor\ncurl ${baseUrl}/readyz`)}</div>
</div>`
}
