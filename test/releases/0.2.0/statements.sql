(
select e.id, e.seq
from events e
where e.project_id = $1 and e.seq < $2 and e.deleted_at is null
order by e.seq desc
limit 1
)
union all
(
select e.id, e.seq
from events e
where e.project_id = $3 and e.seq > $4 and e.deleted_at is null
order by e.seq
limit 1
)
;
delete from "audit_log"
where ctid = any(array(
select s.ctid
from "audit_log" s
where s.at < now() - interval '1 year'
limit $1
for update of s skip locked
))
;
delete from "dead_letters"
where ctid = any(array(
select s.ctid
from "dead_letters" s
where s.at < now() - interval '90 days'
order by s."at"
limit $1
for update of s skip locked
))
;
delete from "deliveries"
where ctid = any(array(
select s.ctid
from "deliveries" s
where s.at < now() - interval '30 days'
order by s."at"
limit $1
for update of s skip locked
))
;
delete from "idempotency_keys"
where ctid = any(array(
select s.ctid
from "idempotency_keys" s
where s.expires_at < now()
order by s."expires_at"
limit $1
for update of s skip locked
))
;
delete from "invites"
where ctid = any(array(
select s.ctid
from "invites" s
where s.expires_at < now()
limit $1
for update of s skip locked
))
;
delete from "key_usage"
where ctid = any(array(
select s.ctid
from "key_usage" s
where s.hour < now() - interval '90 days'
limit $1
for update of s skip locked
))
;
delete from "known_devices"
where ctid = any(array(
select s.ctid
from "known_devices" s
where s.last_used_at < now() - interval '400 days'
limit $1
for update of s skip locked
))
;
delete from "management_tokens"
where ctid = any(array(
select s.ctid
from "management_tokens" s
where s.expires_at < now() - interval '30 days'
limit $1
for update of s skip locked
))
;
delete from "notification_settings"
where ctid = any(array(
select s.ctid
from "notification_settings" s
where s.mute_until < now() - interval '1 hour' and s.collapse is null
limit $1
for update of s skip locked
))
;
delete from "openid_used"
where ctid = any(array(
select s.ctid
from "openid_used" s
where s.expires_at < now()
order by s."expires_at"
limit $1
for update of s skip locked
))
;
delete from "push_bursts"
where ctid = any(array(
select s.ctid
from "push_bursts" s
where s.touched_at < now() - interval '1 day'
limit $1
for update of s skip locked
))
;
delete from "rate_windows"
where ctid = any(array(
select s.ctid
from "rate_windows" s
where s.started_at < now() - interval '1 hour'
limit $1
for update of s skip locked
))
;
delete from "reset_links"
where ctid = any(array(
select s.ctid
from "reset_links" s
where s.expires_at < now()
limit $1
for update of s skip locked
))
returning *
;
delete from "sessions"
where ctid = any(array(
select s.ctid
from "sessions" s
where is_session_expired(
s.is_installed and exists (
select from push_subscriptions b where b.session_id = s.id and b.is_proven
),
s.created_at, s.last_seen_at
)
limit $1
for update of s skip locked
))
;
delete from "setup_links"
where ctid = any(array(
select s.ctid
from "setup_links" s
where s.expires_at < now()
limit $1
for update of s skip locked
))
;
delete from "sign_in_failures"
where ctid = any(array(
select s.ctid
from "sign_in_failures" s
where
s.ctid = any(array(
select ctid from sign_in_failures order by failures desc, last_at desc offset $1
))
limit $2
for update of s skip locked
))
;
delete from "sign_in_failures"
where ctid = any(array(
select s.ctid
from "sign_in_failures" s
where s.last_at < now() - interval '1 day'
limit $1
for update of s skip locked
))
;
delete from "sign_in_steps"
where ctid = any(array(
select s.ctid
from "sign_in_steps" s
where s.expires_at < now()
limit $1
for update of s skip locked
))
;
delete from "used_challenges"
where ctid = any(array(
select s.ctid
from "used_challenges" s
where s.expires_at < now()
limit $1
for update of s skip locked
))
;
delete from "webhook_attempts"
where ctid = any(array(
select s.ctid
from "webhook_attempts" s join webhooks w on w.project_id = s.project_id and w.id = s.webhook_id
where w.deleted_at is not null
limit $1
for update of s skip locked
))
;
delete from "webhook_attempts"
where ctid = any(array(
select s.ctid
from "webhook_attempts" s
where s.started_at < now() - interval '30 days'
order by s."started_at"
limit $1
for update of s skip locked
))
;
delete from "webhooks"
where ctid = any(array(
select s.ctid
from "webhooks" s
where
s.deleted_at < now() - interval '1 hour' and not exists (
select from webhook_attempts a where a.project_id = s.project_id and a.webhook_id = s.id
)
limit $1
for update of s skip locked
))
;
delete from "withheld_deliveries"
where ctid = any(array(
select s.ctid
from "withheld_deliveries" s
where s.at < now() - interval '30 days'
order by s."at"
limit $1
for update of s skip locked
))
;
delete from accounts where id = $1
;
delete from aliases
where project_id = $1 and alias = $2 and user_id = $3
;
delete from event_logs where project_id = any($1::uuid[])
;
delete from invites i
where i.invited_by = $1 and i.token_id is not null and not exists (
select from management_tokens t where t.id = i.token_id
)
returning i.id, i.organization_id, i.expires_at > now() as is_open
;
delete from invites i
where i.organization_id = $1 and i.invited_by = $2 and not exists (
select
from memberships m
where m.organization_id = i.organization_id and m.account_id = i.invited_by and
(i.token_id is null or exists (select from management_tokens t where t.id = i.token_id))
and array_position($3::text[], m.role) >= greatest(
array_position($4::text[], i.role),
array_position($5::text[], $6)
)
)
returning i.id, i.expires_at > now() as is_open
;
delete from invites where hash = decode($1, 'hex')
;
delete from invites
where organization_id = $1 and id = $2 and expires_at > now()
;
delete from invites where organization_id = $1
;
delete from known_devices
where account_id = $1 and hash in (
select hash
from known_devices
where account_id = $2
order by last_used_at desc, hash
offset $3
)
;
delete from known_devices where account_id = $1
;
delete from management_tokens t
where t.account_id = $1 and t.organization_id is null and t.id = $2
returning t.name, t.account_id
;
delete from management_tokens t
where t.organization_id = $1 and t.id = $2
returning t.name, t.account_id
;
delete from management_tokens where account_id = $1
;
delete from memberships where account_id = $1
;
delete from memberships where organization_id = $1 and account_id = $2
;
delete from memberships where organization_id = $1
;
delete from notification_settings
where project_id = $1 and account_id = $2
and channel_id is not distinct from $3::uuid
and state is null and collapse is null
;
delete from openid_connections
where account_id = $1 and id = $2
returning provider
;
delete from openid_connections where account_id = $1
;
delete from openid_providers where name = $1
;
delete from passkeys where account_id = $1
;
delete from passkeys where id = $1 and account_id = $2 returning name
;
delete from push_subscriptions where id = $1 and account_id = $2
;
delete from push_subscriptions
where id = $1 and endpoint_hash = decode($2, 'hex')
;
delete from push_subscriptions where id = $1
;
delete from recovery_codes where account_id = $1
;
delete from reset_links r
where r.account_id = $1
returning r.account_id, coalesce(r.organization_id, $2) as organization_id,
r.expires_at > now() as was_live
;
delete from reset_links r
where r.created_by is not null and r.account_id = $1 or r.created_by = $2 and not (r.created_by is null or (
exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
where theirs.account_id = r.account_id and theirs.organization_id = r.organization_id
)
and not exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
left join memberships own
on own.organization_id = theirs.organization_id and own.account_id = r.created_by
where theirs.account_id = r.account_id and own.role is distinct from 'owner'
)
and exists (
select
from accounts a
join accounts c on c.id = r.created_by
where a.id = r.account_id and (c.is_operator or not a.is_operator)
)
))
returning r.account_id, coalesce(r.organization_id, $3) as organization_id,
r.expires_at > now() as was_live
;
delete from reset_links r
where r.hash = decode($1, 'hex') and r.account_id = $2
and r.expires_at > now() and (r.created_by is null or (
exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
where theirs.account_id = r.account_id and theirs.organization_id = r.organization_id
)
and not exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
left join memberships own
on own.organization_id = theirs.organization_id and own.account_id = r.created_by
where theirs.account_id = r.account_id and own.role is distinct from 'owner'
)
and exists (
select
from accounts a
join accounts c on c.id = r.created_by
where a.id = r.account_id and (c.is_operator or not a.is_operator)
)
))
returning r.account_id, r.organization_id
;
delete from reset_links r
where
r.id = $1 and r.expires_at > now() and (
r.organization_id = $2 or (
exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
where theirs.account_id = r.account_id and theirs.organization_id = $3::uuid
)
and not exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
left join memberships own
on own.organization_id = theirs.organization_id and own.account_id = $4::uuid
where theirs.account_id = r.account_id and own.role is distinct from 'owner'
)
and exists (
select
from accounts a
join accounts c on c.id = $5::uuid
where a.id = r.account_id and (c.is_operator or not a.is_operator)
)
)
)
returning r.account_id, coalesce(r.organization_id, $6) as organization_id,
r.expires_at > now() as was_live
;
delete from reset_links r
where r.organization_id = $1
returning r.account_id, coalesce(r.organization_id, $2) as organization_id,
r.expires_at > now() as was_live
;
delete from sessions s
using openid_sessions o
where o.session_id = s.id and o.provider = $1 and o.issuer = $2
and ($3::text is null or o.subject = $4)
and ($5::text is null or o.sid = $6)
returning s.id, s.account_id
;
delete from sessions s
where not exists (select from push_subscriptions p where p.session_id = s.id)
;
delete from sessions where account_id = $1 and id is distinct from $2
;
delete from sessions where id = $1 and account_id = $2
;
delete from sessions
where id in (
select id
from sessions
where account_id = $1
order by last_seen_at desc, id desc
offset $2
)
;
delete from sessions
where passkey_id = $1 and account_id = $2 and id <> $3
;
delete from sessions where passkey_id = $1
;
delete from setup_links
;
delete from sign_in_failures where account = $1 and lane = $2
;
delete from sign_in_failures where account = $1
;
delete from sign_in_rules where organization_id = $1
;
delete from sign_in_rules where provider = $1
;
delete from sign_in_steps where account_id = $1
;
delete from sign_in_steps
where hash = decode($1, 'hex') and expires_at > now()
;
delete from sign_in_steps
where hash in (
select hash
from sign_in_steps
where account_id = $1
order by expires_at desc, hash
offset $2
)
;
delete from totp_secrets where account_id = $1 and confirmed_at is null
;
delete from totp_secrets where account_id = $1
;
delete from webhook_channels where project_id = $1 and webhook_id = $2
;
insert into accounts (
id, name, email, password_hash, is_password_from_machine, is_email_proven, is_operator
)
values ($1, $2, $3, $4, $5, true, true)
;
insert into accounts (id, name, email, password_hash, is_email_proven)
values ($1, $2, $3, $4, $5)
on conflict (email) do nothing
;
insert into aliases (project_id, alias, user_id, created_at)
values ($1, $2, $3, date_trunc('milliseconds', clock_timestamp()))
returning created_at
;
insert into api_keys (
id, organization_id, project_id, name, hash, last_four, scopes, rate_limit, expires_at, created_by,
is_printed
)
values (
$1, $2, $3, $4, decode($5, 'hex'),
$6, $7::text[], $8, $9,
$10, $11
)
;
insert into audit_log (
id, organization_id, project_id, actor, account_id, session_id, token_id, token_name, key_id,
action, target, details, address, user_agent
)
values (
$1, $2, $3, $4,
$5, $6, $7,
$8, $9, $10, $11,
$12::text::json, $13,
$14
)
;
insert into channels (
project_id, id, public_id, slug, name, icon, description, is_archived, keep_days, created_at
)
values (
$1, $2, $3, $4, $5, $6,
$7, $8, $9, now()
)
on conflict (project_id, slug) do nothing
;
insert into delivery_cursors (project_id, kind, seq)
select l.project_id, $1, 0
from unnest($2::uuid[]) as w (project_id)
join event_logs l on l.project_id = w.project_id
order by l.project_id
on conflict (project_id, kind) do nothing
;
insert into delivery_cursors (project_id, kind, seq)
select project_id, $1, last_seq from event_logs
on conflict (project_id, kind) do nothing
;
insert into delivery_kinds (kind) values ($1) on conflict (kind) do nothing
;
insert into erased_names (project_id, hash, erased_user_id, is_user_id)
select n.project_id, decode(n.hash, 'hex'), n.erased_user_id, n.is_user_id
from unnest(
$1::uuid[],
$2::text[],
$3::uuid[],
$4::boolean[]
) as n (project_id, hash, erased_user_id, is_user_id)
on conflict do nothing
;
insert into erased_users (id, project_id, erased_at, key_id)
values ($1, $2, $3, $4)
;
insert into erasure_keys (id, sealed) values ($1, $2) on conflict (singleton) do nothing
;
insert into event_logs (project_id) values ($1)
;
insert into invites (
id, organization_id, hash, role, email, invited_by, token_id, expires_at
)
values (
$1, $2, decode($3, 'hex'), $4, $5,
$6, $7,
least(
now() + interval '7 days', (select expires_at from management_tokens where id = $8)
)
)
returning expires_at
;
insert into known_devices (hash, account_id)
values (decode($1, 'hex'), $2)
on conflict (hash, account_id) do update set last_used_at = now()
;
insert into management_tokens (
id, hash, last_four, name, account_id, organization_id, role, project_ids,
is_multi_factor, expires_at
)
values (
$1, decode($2, 'hex'), $3, $4, $5,
$6, $7, $8::uuid[],
$9,
now() + make_interval(days => $10)
)
;
insert into memberships (organization_id, account_id, role)
select $1, id, 'owner'
from accounts
where is_operator
;
insert into memberships (organization_id, account_id, role)
select o.id, $1, 'owner'
from organizations o
where o.deleted_at is null
and not exists (
select from memberships m where m.organization_id = o.id and m.role = 'owner'
)
;
insert into memberships (organization_id, account_id, role)
values ($1, $2, $3)
;
insert into memberships (organization_id, account_id, role)
values ($1, $2, 'owner')
;
insert into memberships (organization_id, account_id, role, provider)
select $1, $2, $3, $4
where (select count(*) from memberships where organization_id = $5) < $6
;
insert into notification_settings as n (project_id, account_id, channel_id, state, mute_until, collapse)
select
$1::uuid, $2::uuid, $3::uuid, $4::text,
$5::timestamptz, $6::boolean
where $7::timestamptz is null or $8::timestamptz > now()
on conflict (project_id, account_id, channel_id) do update set
state = excluded.state, mute_until = excluded.mute_until,
collapse = case when $9 then n.collapse else excluded.collapse end
;
insert into openid_connections (id, issuer, subject, account_id, provider)
values ($1, $2, $3, $4, $5)
on conflict do nothing
;
insert into openid_providers (
id, name, label, issuer, client_id, client_secret, scopes, groups_claim, is_trusted
)
values (
$1, $2, $3, $4, $5,
$6, $7,
$8, $9
)
on conflict (name) do nothing
;
insert into openid_sessions (session_id, provider, issuer, subject, sid)
values ($1, $2, $3, $4, $5)
;
insert into openid_used (hash, expires_at)
values (decode($1, 'hex'), now() + $2 * interval '1 second')
on conflict (hash) do nothing
;
insert into organizations (id, name) values ($1, $2)
;
insert into outbox as o (id, project_id, event_id, kind, target_id)
values ($1, $2, $3, $4, $5)
on conflict (project_id, event_id, kind, target_id) do update set
available_at = least(o.available_at, now()), requested_at = now()
where o.token is null
returning
id, event_id, kind, target_id, 'pending' as state, attempts, null as latency_ms, reason, null as at,
available_at as next_attempt_at
;
insert into passkeys (
id, account_id, credential_id, public_key, counter, name, transports, is_synced
)
values (
$1, $2, decode($3, 'hex'),
decode($4, 'hex'), $5,
$6, $7::text::json, $8
)
on conflict (credential_id) do nothing
;
insert into projects (id, organization_id, name) values ($1, $2, $3)
;
insert into push_subscriptions as d (
id, account_id, session_id, endpoint_hash, address, host, label
)
values (
$1, $2, $3, decode($4, 'hex'), $5,
$6, $7
)
on conflict (id) do update set
session_id = excluded.session_id, endpoint_hash = excluded.endpoint_hash,
address = excluded.address, host = excluded.host, label = coalesce($8, d.label),
refusals = 0, flagged = null
;
insert into read_marks as r (account_id, project_id, channel_id, seq)
select $1::uuid, l.project_id, $2::uuid, least($3::bigint, l.last_seq)
from event_logs l
where l.project_id = $4 and exists (select from channels where project_id = $5 and id = $6)
on conflict (project_id, channel_id, account_id) do update set seq = greatest(r.seq, excluded.seq)
returning r.seq
;
insert into read_marks as r (account_id, project_id, channel_id, seq)
select $1::uuid, l.project_id, $2::uuid, least($3::bigint, l.last_seq)
from event_logs l
where l.project_id = $4 and true
on conflict (project_id, channel_id, account_id) do update set seq = greatest(r.seq, excluded.seq)
returning r.seq
;
insert into recovery_codes (account_id, hash)
select $1, decode(h, 'hex')
from unnest($2::text[]) as h
;
insert into reset_links (id, hash, account_id, expires_at, created_by, organization_id)
values (
$1, decode($2, 'hex'), $3, now() + interval '1 hour',
$4, $5
)
returning account_id, organization_id, expires_at
;
insert into scheduled_backups (attempted_at, problem)
values ($1, 'It has not ended yet, or the server ended during it.')
on conflict (singleton) do update set
attempted_at = excluded.attempted_at, problem = excluded.problem
;
insert into sealed_canary (sealed)
values ($1)
on conflict do nothing
;
insert into sessions (
id, hash, account_id, method, is_installed, is_multi_factor, passkey_id, address,
user_agent
)
values (
$1, decode($2, 'hex'), $3, $4, $5,
$6, $7, $8, $9
)
;
insert into setup_links (hash, expires_at)
values (decode($1, 'hex'), now() + interval '30 minutes')
;
insert into sign_in_rules (organization_id, provider, kind, value, role)
select $1::uuid, n.provider, n.kind, n.value, n.role
from unnest(
$2::text[], $3::text[], $4::text[],
$5::text[]
) as n (provider, kind, value, role)
on conflict (organization_id, provider, kind, value) do update set role = excluded.role
;
insert into sign_in_steps (hash, account_id, is_installed, expires_at)
values (
decode($1, 'hex'), $2, $3,
now() + make_interval(secs => $4)
)
;
insert into totp_secrets (id, account_id, secret_sealed)
values ($1, $2, $3)
on conflict (account_id) do nothing
;
insert into used_challenges (hash, expires_at)
values (decode($1, 'hex'), now() + make_interval(secs => $2))
on conflict do nothing
;
insert into vapid_keys (id, public_key, private_key)
values ($1, $2, $3)
on conflict (singleton) do nothing
;
insert into webhook_channels (project_id, webhook_id, channel_id)
select c.project_id, $1, c.id
from channels c
where c.project_id = $2 and c.id = any($3::uuid[])
returning channel_id
;
insert into webhooks (project_id, id, name, url, host, type, preset, has_all_channels, secret)
values (
$1, $2, $3,
$4, $5, $6, $7,
$8, $9
)
;
select $1 >= now() - make_interval(days => $2, mins => 5) as is_known
;
select (
exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
where theirs.account_id = $1::uuid and theirs.organization_id = $2::uuid
)
and not exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
left join memberships own
on own.organization_id = theirs.organization_id and own.account_id = $3::uuid
where theirs.account_id = $4::uuid and own.role is distinct from 'owner'
)
and exists (
select
from accounts a
join accounts c on c.id = $5::uuid
where a.id = $6::uuid and (c.is_operator or not a.is_operator)
)
) as is_allowed
;
select
(
select count(*)::int
from invites i
where i.organization_id = $1 and i.expires_at > now()
) as open,
exists (
select
from memberships m
join accounts p on p.id = m.account_id
where m.organization_id = $2 and p.email = $3
) as is_member
;
select
(select i.epoch from installation i) as epoch,
(
select coalesce(json_agg(g.ord - 1), '[]')::text
from unnest(
$1::uuid[],
$2::uuid[]
) with ordinality as g (session_id, project_id, ord)
left join sessions s on s.id = g.session_id and not is_session_expired(
s.is_installed and exists (
select from push_subscriptions b where b.session_id = s.id and b.is_proven
),
s.created_at, s.last_seen_at
)
left join projects p on p.id = g.project_id and p.deleted_at is null
left join organizations o on o.id = p.organization_id and o.deleted_at is null
and not lacks_second_factor(o.requires_second_factor, s.is_multi_factor)
left join memberships m on m.organization_id = o.id and m.account_id = s.account_id
and m.role = any($3::text[])
where s.id is null or g.project_id is not null and m.account_id is null
) as revoked,
(
select coalesce(max(l.last_seq - c.after), 0)
from unnest(
$4::uuid[],
$5::bigint[]
) as c (project_id, after)
join event_logs l on l.project_id = c.project_id
) as lag
;
select
(select json_agg(p.id) from projects p where p.deleted_at is null) as projects,
(select json_agg(u.id) from erased_users u) as erased
;
select *
from read_webhook_attempts(
$1::uuid[],
$2::uuid[],
$3::uuid[],
$4, $5, $6
)
;
select 1
;
select
a.event_id,
e.id is not null or exists (select from audit_log s where s.id = a.event_id) as is_there
from webhook_attempts a
left join events e on e.project_id = a.project_id and e.id = a.event_id and e.deleted_at is null
where a.project_id = $1 and a.webhook_id = $2
and a.id = $3
;
select
a.id as key, a.at, a.organization_id, a.project_id, a.action, a.target, a.details, a.address,
a.user_agent as "userAgent"
from audit_log a
where a.account_id = $1 and a.id > $2
order by a.id
limit $3
;
select
a.id, a.at, a.actor, a.account_id, coalesce(p.name, (
select d.details ->> 'name'
from audit_log d
where d.account_id = a.account_id and d.action = 'account.deleted' and d.organization_id is null
order by d.id desc
limit 1
)) as person,
a.token_id, a.token_name, a.key_id, k.name as key, a.action, a.project_id, r.name as project,
a.target, a.details, a.address, a.user_agent
from audit_log a
left join accounts p on p.id = a.account_id
left join api_keys k on k.id = a.key_id
left join projects r on r.id = a.project_id
where
a.organization_id = $1
and a.account_id = $2
and a.action = $3
order by a.id desc
limit $4
;
select
a.id, a.at, a.actor, a.account_id, coalesce(p.name, (
select d.details ->> 'name'
from audit_log d
where d.account_id = a.account_id and d.action = 'account.deleted' and d.organization_id is null
order by d.id desc
limit 1
)) as person,
a.token_id, a.token_name, a.key_id, k.name as key, a.action, a.project_id, r.name as project,
a.target, a.details, a.address, a.user_agent
from audit_log a
left join accounts p on p.id = a.account_id
left join api_keys k on k.id = a.key_id
left join projects r on r.id = a.project_id
where
a.organization_id = $1
and a.account_id = $2
and a.action = any($3::text[])
order by a.id desc
limit $4
;
select
a.id, a.at, a.actor, a.account_id, coalesce(p.name, (
select d.details ->> 'name'
from audit_log d
where d.account_id = a.account_id and d.action = 'account.deleted' and d.organization_id is null
order by d.id desc
limit 1
)) as person,
a.token_id, a.token_name, a.key_id, k.name as key, a.action, a.project_id, r.name as project,
a.target, a.details, a.address, a.user_agent
from audit_log a
left join accounts p on p.id = a.account_id
left join api_keys k on k.id = a.key_id
left join projects r on r.id = a.project_id
where
a.organization_id = $1
and a.account_id = $2
order by a.id desc
limit $3
;
select
a.id, a.at, a.actor, a.account_id, coalesce(p.name, (
select d.details ->> 'name'
from audit_log d
where d.account_id = a.account_id and d.action = 'account.deleted' and d.organization_id is null
order by d.id desc
limit 1
)) as person,
a.token_id, a.token_name, a.key_id, k.name as key, a.action, a.project_id, r.name as project,
a.target, a.details, a.address, a.user_agent
from audit_log a
left join accounts p on p.id = a.account_id
left join api_keys k on k.id = a.key_id
left join projects r on r.id = a.project_id
where
a.organization_id = $1
and a.action = $2
order by a.id desc
limit $3
;
select
a.id, a.at, a.actor, a.account_id, coalesce(p.name, (
select d.details ->> 'name'
from audit_log d
where d.account_id = a.account_id and d.action = 'account.deleted' and d.organization_id is null
order by d.id desc
limit 1
)) as person,
a.token_id, a.token_name, a.key_id, k.name as key, a.action, a.project_id, r.name as project,
a.target, a.details, a.address, a.user_agent
from audit_log a
left join accounts p on p.id = a.account_id
left join api_keys k on k.id = a.key_id
left join projects r on r.id = a.project_id
where
a.organization_id = $1
and a.action = any($2::text[])
order by a.id desc
limit $3
;
select
a.id, a.at, a.actor, a.account_id, coalesce(p.name, (
select d.details ->> 'name'
from audit_log d
where d.account_id = a.account_id and d.action = 'account.deleted' and d.organization_id is null
order by d.id desc
limit 1
)) as person,
a.token_id, a.token_name, a.key_id, k.name as key, a.action, a.project_id, r.name as project,
a.target, a.details, a.address, a.user_agent
from audit_log a
left join accounts p on p.id = a.account_id
left join api_keys k on k.id = a.key_id
left join projects r on r.id = a.project_id
where
a.organization_id = $1
and a.id < $2
and a.account_id = $3
and a.action = any($4::text[])
order by a.id desc
limit $5
;
select
a.id, a.at, a.actor, a.account_id, coalesce(p.name, (
select d.details ->> 'name'
from audit_log d
where d.account_id = a.account_id and d.action = 'account.deleted' and d.organization_id is null
order by d.id desc
limit 1
)) as person,
a.token_id, a.token_name, a.key_id, k.name as key, a.action, a.project_id, r.name as project,
a.target, a.details, a.address, a.user_agent
from audit_log a
left join accounts p on p.id = a.account_id
left join api_keys k on k.id = a.key_id
left join projects r on r.id = a.project_id
where
a.organization_id = $1
and a.id < $2
order by a.id desc
limit $3
;
select
a.id, a.at, a.actor, a.account_id, coalesce(p.name, (
select d.details ->> 'name'
from audit_log d
where d.account_id = a.account_id and d.action = 'account.deleted' and d.organization_id is null
order by d.id desc
limit 1
)) as person,
a.token_id, a.token_name, a.key_id, k.name as key, a.action, a.project_id, r.name as project,
a.target, a.details, a.address, a.user_agent
from audit_log a
left join accounts p on p.id = a.account_id
left join api_keys k on k.id = a.key_id
left join projects r on r.id = a.project_id
where a.organization_id = $1 and a.id = any($2::uuid[])
order by a.id desc
limit $3
;
select
a.id, a.at, a.actor, a.account_id, coalesce(p.name, (
select d.details ->> 'name'
from audit_log d
where d.account_id = a.account_id and d.action = 'account.deleted' and d.organization_id is null
order by d.id desc
limit 1
)) as person,
a.token_id, a.token_name, a.key_id, k.name as key, a.action, a.project_id, r.name as project,
a.target, a.details, a.address, a.user_agent
from audit_log a
left join accounts p on p.id = a.account_id
left join api_keys k on k.id = a.key_id
left join projects r on r.id = a.project_id
where
a.organization_id = $1
order by a.id desc
limit $2
;
select
a.id, a.at, a.actor, a.account_id, coalesce(p.name, (
select d.details ->> 'name'
from audit_log d
where d.account_id = a.account_id and d.action = 'account.deleted' and d.organization_id is null
order by d.id desc
limit 1
)) as person,
a.token_id, a.token_name, a.key_id, k.name as key, a.action, a.project_id, r.name as project,
a.target, a.details, a.address, a.user_agent
from audit_log a
left join accounts p on p.id = a.account_id
left join api_keys k on k.id = a.key_id
left join projects r on r.id = a.project_id
where
a.organization_id is null
and a.action = $1
order by a.id desc
limit $2
;
select
a.id, a.at, a.actor, a.account_id, coalesce(p.name, (
select d.details ->> 'name'
from audit_log d
where d.account_id = a.account_id and d.action = 'account.deleted' and d.organization_id is null
order by d.id desc
limit 1
)) as person,
a.token_id, a.token_name, a.key_id, k.name as key, a.action, a.project_id, r.name as project,
a.target, a.details, a.address, a.user_agent
from audit_log a
left join accounts p on p.id = a.account_id
left join api_keys k on k.id = a.key_id
left join projects r on r.id = a.project_id
where
a.organization_id is null
order by a.id desc
limit $1
;
select
a.id, a.kind, a.event_id as "eventId", a.number, a.outcome, a.status, a.error, a.reason, a.response,
a.latency_ms as "latencyMs", a.started_at as "startedAt"
, a.host, a.preset, a.body_hash as "bodyHash"
from webhook_attempts a
join webhooks w on w.project_id = a.project_id and w.id = a.webhook_id and w.deleted_at is null
where a.project_id = $1 and a.webhook_id = $2
and a.id = $3
;
select
a.id, a.kind, a.event_id as "eventId", a.number, a.outcome, a.status, a.error, a.reason, a.response,
a.latency_ms as "latencyMs", a.started_at as "startedAt"
from webhook_attempts a
where a.project_id = $1 and a.webhook_id = $2
and a.id < $3
order by a.id desc
limit $4
;
select
a.id, a.kind, a.event_id as "eventId", a.number, a.outcome, a.status, a.error, a.reason, a.response,
a.latency_ms as "latencyMs", a.started_at as "startedAt"
from webhook_attempts a
where a.project_id = $1 and a.webhook_id = $2
order by a.id desc
limit $3
;
select
a.id,
not exists (
select from webhook_attempts t
where t.project_id = $1 and t.webhook_id = $2 and t.event_id = a.id
and t.outcome = 'delivered'
) as is_missing
from audit_log a
where a.organization_id = $3 and a.id > $4
and a.at >= $5
and a.at < now()
order by a.id
limit $6
;
select account_id, name, counter
from passkeys
where id = $1 and disabled_at is null
for update
;
select are_passwords_off as off from installation
;
select array_to_json(tsvector_to_array(to_tsvector('simple', $1)))::text as lexemes
;
select at_ms, windows, seqs, notes
from append_event(
$1, decode($2, 'hex'), $3,
$4::timestamptz, $5, $6, $7, $8,
$9::text[], $10::text::json, $11, $12, $13
)
;
select at_ms, windows, seqs, notes
from append_events(
$1::uuid[],
$2::bytea[],
$3::int[],
$4::int[],
$5::int[],
$6::uuid[],
$7::timestamptz[],
$8::uuid[],
$9::text[],
$10::text[],
$11::text[],
$12::text[],
$13::text[],
$14::text[],
$15::text[],
$16::text[],
$17::text[],
$18::text[],
$19::boolean[],
$20::text[],
$21::bytea[],
$22::text[],
$23::text[]
)
;
select attempted_at, succeeded_at, file, problem from scheduled_backups
;
select begin_erasure(
$1, $2, $3::text::json
) as has_begun
;
select
c.id as key, c.provider, c.issuer, c.subject, c.created_at as "createdAt",
c.last_used_at as "lastUsedAt"
from openid_connections c
where c.account_id = $1 and c.id > $2
order by c.id
limit $3
;
select
c.project_id as "projectId", c.seq as from, l.last_seq as to, t.has_targets as "hasTargets",
coalesce((
select extract(epoch from clock_timestamp() - e.created_at) * 1000
from events e
where t.has_targets and e.project_id = c.project_id and e.seq > c.seq
order by e.seq
limit 1
), 0)::float8 as "lagMs"
from unnest($1::uuid[]) as w (project_id)
join delivery_cursors c on c.project_id = w.project_id and c.kind = $2
join event_logs l on l.project_id = c.project_id
cross join lateral (select exists (
select
from projects p
cross join lateral subscribed_devices(p.organization_id)
where p.id = c.project_id
) as has_targets) t
cross join set_config('synchronous_commit', 'off', true) as committed
where l.last_seq > c.seq
for update of c skip locked
;
select
c.project_id as "projectId", c.seq as from, l.last_seq as to, t.has_targets as "hasTargets",
coalesce((
select extract(epoch from clock_timestamp() - e.created_at) * 1000
from events e
where t.has_targets and e.project_id = c.project_id and e.seq > c.seq
order by e.seq
limit 1
), 0)::float8 as "lagMs"
from unnest($1::uuid[]) as w (project_id)
join delivery_cursors c on c.project_id = w.project_id and c.kind = $2
join event_logs l on l.project_id = c.project_id
cross join lateral (select exists (
select from webhooks w
where w.project_id = c.project_id and w.type = 'event.created'
and w.deleted_at is null and w.disabled_at is null
) as has_targets) t
cross join set_config('synchronous_commit', 'off', true) as committed
where l.last_seq > c.seq
for update of c skip locked
;
select
case when n.mute_until is null or n.mute_until > now() then n.state end as state,
case when n.mute_until > now() then n.mute_until end as mute_until,
n.collapse
from channels c
left join notification_settings n
on n.project_id = c.project_id and n.channel_id = c.id and n.account_id = $1
where c.project_id = $2 and c.id = $3
;
select
case when n.mute_until is null or n.mute_until > now() then n.state end as state,
case when n.mute_until > now() then n.mute_until end as mute_until,
n.collapse
from notification_settings n
where n.project_id = $1 and n.account_id = $2 and n.channel_id is null
;
select check_writes()
;
select
checked_at between now() - interval '1 minute' and now() + interval '20 seconds' as is_steady,
coalesce(untrusted_until > now(), false) as is_untrusted
from clock
;
select coalesce(sum(late.events), 0)::float8 as events, coalesce(max(late.seconds), 0)::float8 as seconds
from (
select d.events, extract(epoch from now() - e.created_at) as seconds
from (
select l.project_id, l.last_seq - coalesce(c.seq, 0) as events, coalesce(c.seq, 0) as seq
from event_logs l
join projects p on p.id = l.project_id and p.deleted_at is null
left join search_cursors c on c.project_id = l.project_id
where (
l.last_seq - coalesce(c.seq, 0) >= $1
or (l.last_seq + 1) >> 12 > (coalesce(c.seq, 0) + 1) >> 12
)
limit $2
) d
cross join lateral (
select e.created_at
from events e
where e.project_id = d.project_id and e.seq >= least(d.seq + $3, (d.seq + 1) | 4095)
order by e.seq
limit 1
) e
) late
;
select count(*)::int as count from openid_providers
;
select count(*)::int as count
from projects p
join webhooks w on w.project_id = p.id
where p.organization_id = $1 and p.deleted_at is null and w.deleted_at is null
;
select count(*)::int as count from webhooks where project_id = $1 and deleted_at is null
;
select count(*)::int as members from memberships where organization_id = $1
;
select count(*)::int as n
from (select from outbox where kind = $1 limit $2) as pending
;
select count(*)::int as n from api_keys k where k.project_id = $1 and (k.revoked_at is null and (k.expires_at is null or k.expires_at > now()))
;
select count(*)::int as n from management_tokens t where t.account_id = $1 and t.organization_id is null and t.expires_at > now()
;
select count(*)::int as n from management_tokens t where t.organization_id = $1 and t.expires_at > now()
;
select count(*)::int as n from organizations where deleted_at is null
;
select count(*)::int as n from passkeys where account_id = $1
;
select count(*)::int as n
from projects
where organization_id = $1 and deleted_at is null
;
select count(*)::int as n
from recovery_codes
where account_id = $1 and used_at is null
;
select count(*)::int as total
from channels c
where c.project_id = $1
and not c.is_archived
and strpos(lower(c.name), lower($2)) > 0
;
select count(*)::int as total
from channels c
where c.project_id = $1
and not c.is_archived
;
select count(*)::int as total
from channels c
where c.project_id = $1
;
select count_attempt($1, $2, $3, $4, $5) as wait_s
;
select count_free_aliases($1, $2) as free, max_aliases() as max
;
select credential_id, transports
from passkeys
where account_id = $1 and disabled_at is null
order by id
;
select credential_id, transports
from passkeys
where account_id = $1
order by id
;
select
current_setting('server_version') as version,
pg_database_size(current_database()) as bytes,
(select count(*)::int from projects where deleted_at is null) as projects,
(select coalesce(sum(last_seq), 0)::bigint from event_logs) as events,
(
select count(*)::int
from (select from outbox where kind = 'push' limit $1) as pending
) as push,
(
select count(*)::int
from (select from outbox where kind = 'webhook' limit $2) as pending
) as webhook,
(select id from vapid_keys) as key_id,
(select count(*)::int from push_subscriptions) as devices,
(select email from accounts where is_operator order by created_at, id limit 1) as operator
;
select
d.id as key, d.host, d.label, d.is_on as "isOn", d.quiet_from as "quietFromMinutes",
d.quiet_to as "quietToMinutes", d.quiet_zone as "quietZone", d.created_at as "createdAt",
d.last_push_at as "lastPushAt", d.last_outcome as "lastOutcome"
from push_subscriptions d
where d.account_id = $1 and d.id > $2
order by d.id
limit $3
;
select d.id as key, d.last_used_at as "lastUsedAt"
from known_devices d
where d.account_id = $1 and d.id > $2
order by d.id
limit $3
;
select d.id, d.account_id, d.session_id, d.address, encode(d.endpoint_hash, 'hex') as hash
from push_subscriptions d
where d.session_id = $1 or d.endpoint_hash = decode($2, 'hex')
order by d.id
for update
;
select
d.id, d.address, encode(d.endpoint_hash, 'hex') as hash, clock_timestamp() as now,
coalesce(d.tested_at < now() - make_interval(secs => $1), true) as may
from push_subscriptions d
join sessions s on s.id = d.session_id and not is_session_expired(
s.is_installed and exists (
select from push_subscriptions b where b.session_id = s.id and b.is_proven
),
s.created_at, s.last_seen_at
)
where d.account_id = $2 and d.id = $3
for no key update of d
;
select
d.id, d.address, encode(d.endpoint_hash, 'hex') as hash, clock_timestamp() as now,
coalesce(d.tested_at < now() - make_interval(secs => $1), true) as may
from push_subscriptions d
join sessions s on s.id = d.session_id and not is_session_expired(
s.is_installed and exists (
select from push_subscriptions b where b.session_id = s.id and b.is_proven
),
s.created_at, s.last_seen_at
)
where d.account_id = $2 and d.session_id = $3
for no key update of d
;
select
d.id, d.label, d.host, d.is_on as "isOn", d.session_id = $1 as "isCurrent", d.created_at as "createdAt",
d.last_push_at as "lastPushAt", d.last_outcome as "lastOutcome", d.refusals, d.flagged,
json_build_array(d.quiet_from, d.quiet_to, d.quiet_zone) as quiet
from push_subscriptions d
join sessions s on s.id = d.session_id and not is_session_expired(
s.is_installed and exists (
select from push_subscriptions b where b.session_id = s.id and b.is_proven
),
s.created_at, s.last_seen_at
)
where d.account_id = $2 and d.id < $3
order by d.id desc
limit $4
;
select
d.id, d.label, d.host, d.is_on as "isOn", d.session_id = $1 as "isCurrent", d.created_at as "createdAt",
d.last_push_at as "lastPushAt", d.last_outcome as "lastOutcome", d.refusals, d.flagged,
json_build_array(d.quiet_from, d.quiet_to, d.quiet_zone) as quiet
from push_subscriptions d
join sessions s on s.id = d.session_id and not is_session_expired(
s.is_installed and exists (
select from push_subscriptions b where b.session_id = s.id and b.is_proven
),
s.created_at, s.last_seen_at
)
where d.account_id = $2 and d.id = $3
order by d.id desc
limit $4
;
select
d.id, d.label, d.host, d.is_on as "isOn", d.session_id = $1 as "isCurrent", d.created_at as "createdAt",
d.last_push_at as "lastPushAt", d.last_outcome as "lastOutcome", d.refusals, d.flagged,
json_build_array(d.quiet_from, d.quiet_to, d.quiet_zone) as quiet
from push_subscriptions d
join sessions s on s.id = d.session_id and not is_session_expired(
s.is_installed and exists (
select from push_subscriptions b where b.session_id = s.id and b.is_proven
),
s.created_at, s.last_seen_at
)
where d.account_id = $2
order by d.id desc
limit $3
;
select d.id, d.label, r.name
from projects p
join memberships m on m.organization_id = p.organization_id
join push_subscriptions d on d.account_id = m.account_id
join accounts r on r.id = d.account_id
where p.id = $1 and d.id = any($2::uuid[])
;
select deleted, last_seq from expire_events($1, $2, $3, $4)
;
select dispatch_pushes(
$1::uuid[], $2::bigint[], $3::bigint[], $4::text::jsonb
) as count
;
select distinct coalesce(by_id.id, by_slug.id) as id
from unnest(
$1::uuid[],
$2::text[]
) as asked (id, slug)
left join channels by_id on by_id.project_id = $3 and by_id.id = asked.id
left join channels by_slug on by_slug.project_id = $4 and by_slug.slug = asked.slug
where by_id.id is not null or by_slug.id is not null
;
select distinct project_id, (now() - make_interval(secs => $1))::text as before
from events
where deleted_at < now() - make_interval(secs => $2)
limit $3
;
select e.channel_id as "channelId", floor((date_part('epoch', e.hour) * 1000 - $1::float8) / $2::float8)::int as bucket, sum(e.n)::float8 as n
from event_counts e
where e.project_id = $3
and e.hour >= $4 and e.hour < $5
group by 1, 2
;
select e.channel_id as "channelId", floor((date_part('epoch', e.occurred_at) * 1000 - $1::float8) / $2::float8)::int as bucket, count(*)::float8 as n
from events e
where e.project_id = $3 and e.deleted_at is null
and e.occurred_at >= $4 and e.occurred_at < $5
group by 1, 2
;
select e.created_at
from events e
join delivery_kinds k on k.kind = 'webhook' and k.since <= e.created_at
where e.project_id = $1 and e.id = $2 and e.deleted_at is null
and e.created_at > now() - interval '29 days'
and exists (select from webhooks w where w.project_id = e.project_id and w.type = 'event.created' and w.deleted_at is null)
;
select
e.id is not null or exists (
select from delivery_records d where d.project_id = $1 and d.event_id = $2
) as is_known,
(
select count(*)::int
from delivery_cursors c
where c.project_id = $3 and (e.id is null or c.seq >= e.seq)
) as cursors
from (values (true)) as one
left join events e on e.project_id = $4 and e.id = $5
;
select
e.id, e.seq, e.occurred_at,
(
w.has_all_channels
or exists (
select from webhook_channels wc
where wc.project_id = w.project_id and wc.webhook_id = w.id and wc.channel_id = e.channel_id
)
) and not exists (
select from webhook_attempts a
where a.project_id = e.project_id and a.webhook_id = w.id and a.event_id = e.id
and a.outcome = 'delivered'
) as is_missing
from webhooks w
join events e on e.project_id = w.project_id and e.deleted_at is null
where w.project_id = $1 and w.id = $2
and e.occurred_at >= $3
and e.occurred_at < $4
and (e.occurred_at > $5 or e.seq > $6)
order by e.occurred_at, e.seq
limit $7
;
select
e.id, e.seq, e.occurred_at,
(
w.has_all_channels
or exists (
select from webhook_channels wc
where wc.project_id = w.project_id and wc.webhook_id = w.id and wc.channel_id = e.channel_id
)
) and not exists (
select from webhook_attempts a
where a.project_id = e.project_id and a.webhook_id = w.id and a.event_id = e.id
and a.outcome = 'delivered'
) as is_missing
from webhooks w
join events e on e.project_id = w.project_id and e.deleted_at is null
where w.project_id = $1 and w.id = $2
and e.occurred_at >= $3
and e.occurred_at < now()
and (e.occurred_at > $4 or e.seq > $5)
order by e.occurred_at, e.seq
limit $6
;
select e.notify, e.created_at
from events e
join delivery_kinds k on k.kind = 'push' and k.since <= e.created_at
where e.project_id = $1 and e.id = $2 and e.deleted_at is null
and e.created_at > now() - interval '29 days'
;
select email from accounts where id = $1 for no key update
;
select email, password_hash from accounts where id = $1
;
select erased_user_id as id, count(*)::int as n from erased_names group by erased_user_id
;
select
exists (
select
from accounts
where id = $1 and password_hash is not null and is_password_usable(id)
)
or exists (select from openid_connections where account_id = $2)
or exists (
select from passkeys where account_id = $3 and disabled_at is null
) as has_way_in
;
select exists (
select from pg_stat_activity
where
datname = current_database() and wait_event = 'SyncRep'
and state_change < clock_timestamp() - make_interval(secs => $1)
) as is_waiting
;
select exists (
select from setup_links where hash = decode($1, 'hex') and expires_at > now()
) as live
;
select exists (
select from totp_secrets where account_id = $1 and confirmed_at is not null
) as is_on
;
select
exists (select from accounts) as accounts,
exists (select from events) as events,
exists (select from identities) as users
;
select exists (select from accounts) as any
;
select exists (select from organizations where deleted_at is null) as any
;
select extract(epoch from at + interval '24 hours' - now())::float8 as wait_s
from audit_log
where organization_id = $1 and action = 'invite.addressRefused' and at > now() - interval '24 hours'
order by at desc
offset $2
limit 1
;
select extract(epoch from at + interval '24 hours' - now())::float8 as wait_s
from audit_log
where
organization_id is null and account_id = $1 and (
action = 'account.addressRefused'
or action = 'account.edited' and details ->> 'fields' like '%email%'
)
and at > now() - interval '24 hours'
order by at desc
offset $2
limit 1
;
select failures, failing_since, pauses, paused_until, disabled_at is null as is_enabled,
clock_timestamp() as now
from webhooks
where project_id = $1 and id = $2 and deleted_at is null
for no key update
;
select find_event($1, $2) as text
;
select from accounts
where id = $1 and password_hash is not distinct from $2
for no key update
;
select from accounts where id = $1 for update
;
select from channels where project_id = $1 and slug = $2
;
select from event_logs where project_id = $1 for update
;
select from event_logs
where project_id = any($1::uuid[])
order by project_id
for update
;
select from management_tokens where id = $1 and expires_at > clock_timestamp() for key share
;
select from memberships where organization_id = $1 and account_id = $2
;
select
from memberships
where organization_id = $1 and role = 'owner' and account_id <> $2
limit 1
;
select from openid_connections where account_id = $1 and issuer = $2
;
select from organizations where id = $1 for no key update
;
select from organizations where id = any($1::uuid[]) order by id for no key update
;
select from sessions where id = $1
;
select from totp_secrets where account_id = $1 and confirmed_at is null
;
select h.at, h.id, h.alias, h.change, h.other, p.id as account_id, p.name as account_name
from alias_changes h
left join accounts p on p.id = h.account_id
where h.project_id = $1 and h.user_id = $2
and (h.at, h.id) < ($3, $4::bigint)
order by h.at desc, h.id desc
limit $5
;
select h.at, h.id, h.alias, h.change, h.other, p.id as account_id, p.name as account_name
from alias_changes h
left join accounts p on p.id = h.account_id
where h.project_id = $1 and h.user_id = $2
order by h.at desc, h.id desc
limit $3
;
select h.seq, clock_timestamp() + make_interval(secs => $1) as undo_until
from hide_events($2, array[$3::bigint]) as h (seq)
;
select i.epoch from installation i
;
select
i.id as key, i.organization_id, i.role, i.email, i.created_at as "createdAt", i.expires_at as "expiresAt"
from invites i
where i.invited_by = $1 and i.id > $2
order by i.id
limit $3
;
select
i.id, i.organization_id, o.name as organization, i.role, i.email, p.name as invited_by,
i.created_at, i.expires_at
from invites i
join organizations o on o.id = i.organization_id and o.deleted_at is null
join memberships m on m.organization_id = i.organization_id and m.account_id = i.invited_by
join accounts p on p.id = m.account_id
where i.hash = decode($1, 'hex') and i.expires_at > now() and
(i.token_id is null or exists (select from management_tokens t where t.id = i.token_id))
and array_position($2::text[], m.role) >= greatest(
array_position($3::text[], i.role),
array_position($4::text[], $5)
)
order by i.id desc
limit $6
;
select
i.id, i.organization_id, o.name as organization, i.role, i.email, p.name as invited_by,
i.created_at, i.expires_at
from invites i
join organizations o on o.id = i.organization_id and o.deleted_at is null
join memberships m on m.organization_id = i.organization_id and m.account_id = i.invited_by
join accounts p on p.id = m.account_id
where i.organization_id = $1  and i.expires_at > now() and
(i.token_id is null or exists (select from management_tokens t where t.id = i.token_id))
and array_position($2::text[], m.role) >= greatest(
array_position($3::text[], i.role),
array_position($4::text[], $5)
)
order by i.id desc
limit $6
;
select
i.id, i.organization_id, o.name as organization, i.role, i.email, p.name as invited_by,
i.created_at, i.expires_at
from invites i
join organizations o on o.id = i.organization_id and o.deleted_at is null
join memberships m on m.organization_id = i.organization_id and m.account_id = i.invited_by
join accounts p on p.id = m.account_id
where i.organization_id = $1 and i.id < $2 and i.expires_at > now() and
(i.token_id is null or exists (select from management_tokens t where t.id = i.token_id))
and array_position($3::text[], m.role) >= greatest(
array_position($4::text[], i.role),
array_position($5::text[], $6)
)
order by i.id desc
limit $7
;
select
i.public_id as id, a.user_id as owner, o.public_id as owner_id,
exists (select from identities where project_id = $1 and user_id = $2) as is_user_id
from identities i
left join aliases a on a.project_id = i.project_id and a.alias = $3
left join identities o on o.project_id = i.project_id and o.user_id = a.user_id
where i.project_id = $4 and i.user_id = $5
;
select
i.public_id, i.user_id, i.properties::text as properties,
(
select coalesce(json_agg(a.alias order by a.created_at, a.alias), '[]')::text
from aliases a
where a.project_id = i.project_id and a.user_id = i.user_id
) as aliases,
i.created_at, i.updated_at
from identities i
where i.project_id = $1 and i.user_id = coalesce(
(select user_id from identities where project_id = $2 and user_id = $3),
(select user_id from aliases where project_id = $4 and alias = $5)
)
;
select id from accounts where email = $1
;
select id
from accounts
where id = $1
or is_operator and exists (select from accounts where id = $2 and is_operator)
order by id
for update
;
select id from audit_log where id = any($1::uuid[])
;
select id from channels where project_id = $1 and id = $2 for key share
;
select id from openid_providers where name = $1 for update
;
select id from sessions where id = $1 for no key update
;
select id from webhooks
where project_id = $1 and id = $2 and deleted_at is null
;
select id, account_id, public_key, disabled_at is not null as is_disabled
from passkeys
where credential_id = decode($1, 'hex')
;
select
id, event_id, kind, target_id, 'dead' as state, attempts, null as latency_ms, reason, at,
null as next_attempt_at
from dead_letters
where project_id = $1 and id < $2::uuid
order by id desc
limit $3
;
select
id, event_id, kind, target_id, 'dead' as state, attempts, null as latency_ms, reason, at,
null as next_attempt_at
from dead_letters
where project_id = $1
order by id desc
limit $2
;
select
id, event_id, kind, target_id, 'pending' as state, attempts, null as latency_ms, reason, null as at,
case when token is null then available_at end as next_attempt_at
from outbox
where project_id = $1
and (event_id, kind, target_id) < ($2::uuid, $3, $4::uuid)
order by event_id desc, kind desc, target_id desc
limit $5
;
select
id, event_id, kind, target_id, 'pending' as state, attempts, null as latency_ms, reason, null as at,
case when token is null then available_at end as next_attempt_at
from outbox
where project_id = $1
order by event_id desc, kind desc, target_id desc
limit $2
;
select
id, event_id, kind, target_id, state, attempts, latency_ms, reason, at, next_attempt_at, rank
from (
select
o.id, o.event_id, o.kind, o.target_id, 'pending' as state, o.attempts, null::bigint as latency_ms, o.reason,
null::timestamptz as at, case when o.token is null then o.available_at end as next_attempt_at, 0 as rank
from outbox o
where o.project_id = $1 and o.event_id = $2
union all
select
d.id, d.event_id, d.kind, d.target_id, d.state, d.attempts, d.latency_ms, d.reason, d.at, null, 1
from delivery_records d
where d.project_id = $3 and d.event_id = $4
) as all_of_event
order by kind, coalesce(target_id, $5), rank
limit $6
;
select id, is_operator as "isOperator" from accounts where email = $1
;
select id, name from accounts where id = any($1::uuid[])
union all
select account_id, details ->> 'name'
from audit_log
where account_id = any($2::uuid[]) and action = 'account.deleted' and organization_id is null
union all
select id, name from api_keys where id = any($3::uuid[])
union all
select id, name from channels
where project_id = any($4::uuid[]) and id = any($5::uuid[])
union all
select id, name from webhooks
where project_id = any($6::uuid[]) and id = any($7::uuid[])
;
select id, name
from channels
where project_id = $1 and id = any($2::uuid[])
;
select id, name
from projects
where organization_id = $1 and deleted_at is null
and id = $2
order by id
for no key update
;
select id, name
from projects
where organization_id = $1 and deleted_at is null
order by id
for no key update
;
select id, name
from projects
where organization_id = $1 and deleted_at is null
order by id
;
select id, name
from webhooks
where project_id = $1 and id = any($2::uuid[]) and deleted_at is null
;
select
id, name, host, url, type, preset, secret, disabled_at is null as "isEnabled", tested_at as "testedAt",
now() as now
from webhooks
where project_id = $1 and id = $2 and deleted_at is null
for no key update
;
select id, name, is_synced, created_at, last_used_at, disabled_at is not null as is_disabled
from passkeys
where account_id = $1
order by id
;
select
id, name, label, issuer, client_id as "clientId", client_secret as "clientSecret", scopes,
groups_claim as "groupsClaim", is_trusted as "isTrusted"
from openid_providers
;
select
id, now() as at, name, email, is_operator as "isOperator", created_at as "createdAt",
password_hash is not null as "hasPassword"
from accounts
where id = $1
;
select id, organization_id from projects where id = any($1::uuid[])
;
select
id, project_id as "projectId", event_id as "eventId", target_id as "targetId", claim_count as "claimCount",
attempts, is_gone as "isGone", age_ms as "ageMs", waited_ms as "waitedMs", hidden_ms as "hiddenMs"
from claim_deliveries(
$1,
$2::uuid[],
$3::int[],
$4::timestamptz[],
$5, $6, $7
)
;
select id, provider, issuer, created_at, last_used_at
from openid_connections
where account_id = $1
order by id
;
select id, public_key from vapid_keys
;
select id, sealed from erasure_keys
;
select id, secret_sealed, last_step, clock_timestamp() as now
from totp_secrets
where account_id = $1
for update
;
select index_users($1, $2, $3) as last
;
select indexed_seq, indexed, last_seq from index_next_events($1, $2, $3)
;
select insert_webhook_attempts(
$1::uuid[],
$2::uuid[],
$3::uuid[],
$4::uuid[],
$5::text[],
$6::int[],
$7::text[],
$8::int[],
$9::text[],
$10::text[],
$11::text[],
$12::int[],
$13::timestamptz[],
$14::text[],
$15::text[],
$16::bytea[],
$17::boolean[],
$18
) as id
;
select is_done from continue_erasure($1, $2, $3)
;
select is_done, events, identity_id, author
from continue_erasure($1, $2, $3)
;
select is_operator and not exists (
select from accounts other where other.is_operator and other.id <> $1
) as is_last
from accounts
where id = $2
;
select is_password_usable($1) as is_usable
;
select json_object_agg(name, setting) as settings
from pg_settings
where name in ($1,$2,$3,$4,$5,$6,$7,$8)
;
select jump_s, untrusted_until, coalesce(untrusted_until > now(), false) as is_untrusted from check_clock()
;
select
k.id as key, k.name, k.is_synced as "isSynced", k.created_at as "createdAt",
k.last_used_at as "lastUsedAt", k.disabled_at as "disabledAt"
from passkeys k
where k.account_id = $1 and k.id > $2
order by k.id
limit $3
;
select
k.id, k.name, k.last_four, k.rate_limit, array_to_string(k.scopes, ' ') as scopes,
k.created_at, p.name as created_by, k.last_used_at, k.expires_at, k.revoked_at,
k.is_printed, (
select string_agg(coalesce(u.requests, 0)::text, ' ' order by h.hour)
from generate_series(
date_trunc('hour', now()) - interval '23 hours', date_trunc('hour', now()), interval '1 hour'
) as h (hour)
left join key_usage u on u.key_id = k.id and u.hour = h.hour
) as requests
from api_keys k
left join accounts p on p.id = k.created_by
where k.project_id = $1 and k.id < $2
order by k.id desc
limit $3
;
select
k.id, k.name, k.last_four, k.rate_limit, array_to_string(k.scopes, ' ') as scopes,
k.created_at, p.name as created_by, k.last_used_at, k.expires_at, k.revoked_at,
k.is_printed, (
select string_agg(coalesce(u.requests, 0)::text, ' ' order by h.hour)
from generate_series(
date_trunc('hour', now()) - interval '23 hours', date_trunc('hour', now()), interval '1 hour'
) as h (hour)
left join key_usage u on u.key_id = k.id and u.hour = h.hour
) as requests
from api_keys k
left join accounts p on p.id = k.created_by
where k.project_id = $1 and k.id = $2
order by k.id desc
limit $3
;
select
k.id, k.name, k.last_four, k.rate_limit, array_to_string(k.scopes, ' ') as scopes,
k.created_at, p.name as created_by, k.last_used_at, k.expires_at, k.revoked_at,
k.is_printed, (
select string_agg(coalesce(u.requests, 0)::text, ' ' order by h.hour)
from generate_series(
date_trunc('hour', now()) - interval '23 hours', date_trunc('hour', now()), interval '1 hour'
) as h (hour)
left join key_usage u on u.key_id = k.id and u.hour = h.hour
) as requests
from api_keys k
left join accounts p on p.id = k.created_by
where k.project_id = $1
order by k.id desc
limit $2
;
select k.id, k.name, k.rate_limit, array_to_string(k.scopes, ' ') as scopes, k.expires_at
from api_keys k
where k.project_id = $1 and k.id = $2 and (k.revoked_at is null and (k.expires_at is null or k.expires_at > now()))
for no key update
;
select
k.id, k.public_key, k.private_key,
(select email from accounts where is_operator order by created_at, id limit 1) as email
from vapid_keys k
;
select k.id, k.revoked_at
from api_keys k
where k.project_id = $1 and k.id = $2
for no key update
;
select
k.name, k.rate_limit, array_to_string(k.scopes, ' ') as scopes, k.expires_at,
p.id as project_id, p.name as project, o.id as organization_id, o.name as organization
from api_keys k
join projects p on p.id = k.project_id and p.deleted_at is null
join organizations o on o.id = p.organization_id
where k.id = $1
;
select k.rate_limit
from api_keys k
where k.project_id = $1 and k.id = $2 and (k.revoked_at is null and (k.expires_at is null or k.expires_at > now()))
for no key update
;
select keep_days from projects where id = $1
;
select l.candidates, l.last_seq, l.texts
from list_events(
$1, $2,
$3, $4::text[],
$5::text[], $6, $7, $8, $9,
$10
) l
;
select l.project_id as "projectId", p.organization_id as "organizationId"
from unnest($1::uuid[]) as w (project_id)
join event_logs l on l.project_id = w.project_id
join projects p on p.id = w.project_id and p.deleted_at is null
left join search_cursors c on c.project_id = w.project_id
where (
l.last_seq - coalesce(c.seq, 0) >= $2
or (l.last_seq + 1) >> 12 > (coalesce(c.seq, 0) + 1) >> 12
)
;
select last_seq as last from event_logs where project_id = $1
;
select m.organization_id as "organizationId", m.role
from memberships m
join organizations o on o.id = m.organization_id and o.deleted_at is null
where m.account_id = $1
order by m.organization_id
;
select m.organization_id as "organizationId", m.role, m.provider
from memberships m
join organizations o on o.id = m.organization_id and o.deleted_at is null
where m.account_id = $1
order by m.organization_id
;
select m.organization_id as key, o.name, m.role, m.created_at as "joinedAt"
from memberships m
join organizations o on o.id = m.organization_id and o.deleted_at is null
where m.account_id = $1 and m.organization_id > $2
order by m.organization_id
limit $3
;
select m.role
from memberships m
join organizations o on o.id = m.organization_id and o.deleted_at is null
where m.account_id = $1
;
select m.role
from memberships m
join organizations o on o.id = m.organization_id and o.deleted_at is null
where m.organization_id = $1 and m.account_id = $2
;
select min(s.segment) as first, max(s.segment) as last
from (
select segment, segment - row_number() over (order by segment) as island
from event_segments
where project_id = $1
and last_at > coalesce(to_timestamp($2::float8), '-infinity')
and first_at < coalesce(to_timestamp($3::float8), 'infinity')
) s
group by s.island
order by 1
;
select n.channel_id,
case when n.mute_until is null or n.mute_until > now() then n.state end as state,
case when n.mute_until > now() then n.mute_until end as mute_until,
n.collapse
from notification_settings n
where n.project_id = $1 and n.account_id = $2
and n.channel_id is not null
and (n.mute_until is null or n.mute_until > now() or n.collapse is not null)
order by n.channel_id
limit $3
;
select n.channel_id,
case when n.mute_until is null or n.mute_until > now() then n.state end as state,
case when n.mute_until > now() then n.mute_until end as mute_until,
n.collapse
from notification_settings n
where n.project_id = $1 and n.account_id = $2
and n.channel_id is not null
and n.channel_id > $3
and (n.mute_until is null or n.mute_until > now() or n.collapse is not null)
order by n.channel_id
limit $4
;
select n.project_id || ' ' || coalesce(n.channel_id, $1) as key, n.seq::float8 as seq
from read_marks n
where n.account_id = $2 and (n.project_id, coalesce(n.channel_id, $3)) > ($4::uuid, $5::uuid)
order by n.project_id, coalesce(n.channel_id, $6)
limit $7
;
select n.project_id || ' ' || coalesce(n.channel_id, $1) as key, n.state, n.mute_until as "muteUntil", n.collapse
from notification_settings n
where n.account_id = $2 and (n.project_id, coalesce(n.channel_id, $3)) > ($4::uuid, $5::uuid)
order by n.project_id, coalesce(n.channel_id, $6)
limit $7
;
select name from migrations order by name
;
select name
from webhooks
where project_id = $1 and type = 'audit.entry' and deleted_at is null
limit 1
;
select name, checksum, to_jsonb(migrations) ->> 'oldest_server' as oldest_server
from migrations
order by name
;
select
numnode(to_tsquery('simple', $1)) = 0 as is_empty,
(
select coalesce(json_agg(distinct l.lexeme), '[]')::text
from unnest($2::text[]) as w (word),
unnest(tsvector_to_array(to_tsvector('simple', w.word))) as l (lexeme)
) as lexemes
;
select
o.id as organization_id, m.role, i.epoch, l.last_seq as head,
greatest(
l.expired_seq,
coalesce((select min(e.seq) from events e where e.project_id = l.project_id), l.last_seq + 1) - 1
) as expired_seq
from sessions s
join memberships m on m.account_id = s.account_id
join organizations o on o.id = m.organization_id and o.deleted_at is null
and not lacks_second_factor(o.requires_second_factor, s.is_multi_factor)
join projects p on p.organization_id = o.id and p.id = $1 and p.deleted_at is null
join event_logs l on l.project_id = p.id
cross join installation i
where s.id = $2 and not is_session_expired(
s.is_installed and exists (
select from push_subscriptions b where b.session_id = s.id and b.is_proven
),
s.created_at, s.last_seen_at
)
;
select
o.id as organization_id, o.name as organization, m.role, n.needs_second_factor,
p.id as project_id, p.name as project
from memberships m
join organizations o on o.id = m.organization_id and o.deleted_at is null
cross join lateral (
select lacks_second_factor(o.requires_second_factor, coalesce(
(select s.is_multi_factor from sessions s where s.id = $1), false
)) as needs_second_factor
) n
left join projects p on p.organization_id = o.id and p.deleted_at is null
and not n.needs_second_factor
where m.account_id = $2
order by o.id, p.id
;
select o.id, (
select count(*)::int
from (
select
from projects p
join channels c on c.project_id = p.id
where p.organization_id = o.id and p.deleted_at is null
limit $1
) as counted
) as channels
from unnest($2::uuid[]) as o (id)
;
select o.name
from memberships m
join organizations o on o.id = m.organization_id and o.deleted_at is null
where m.account_id = $1 and m.role = 'owner' and not exists (
select
from memberships other
where other.organization_id = m.organization_id and other.role = 'owner'
and other.account_id <> $2
)
order by o.id
limit $3
;
select
o.name, o.created_at, o.requires_second_factor,
(select count(*)::int from memberships m where m.organization_id = o.id) as members,
(
select count(*)::int
from memberships m
where m.organization_id = o.id
and not exists (
select from passkeys k where k.account_id = m.account_id and k.disabled_at is null
)
and not exists (
select from totp_secrets t
where t.account_id = m.account_id and t.confirmed_at is not null
)
) as members_without
from organizations o
where o.id = $1 and o.deleted_at is null
;
select ord, key_id, project_id, scopes, rate_limit, used, reset_at, retry_after
from count_requests(
$1::bytea[], $2::int[]
)
;
select ord, outcome, body
from identify_users(
$1::uuid[],
$2::text[],
$3::uuid[],
$4::text[],
$5::json[],
$6::json[],
$7::text[],
$8::bytea[],
$9::text[]
)
;
select organization_id
from projects
where id = $1 and deleted_at is null
for no key update
;
select organization_id from projects where id = $1
;
select p.id, p.name, p.email
from reset_links r
join accounts p on p.id = r.account_id
where r.hash = decode($1, 'hex') and r.expires_at > now() and (r.created_by is null or (
exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
where theirs.account_id = r.account_id and theirs.organization_id = r.organization_id
)
and not exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
left join memberships own
on own.organization_id = theirs.organization_id and own.account_id = r.created_by
where theirs.account_id = r.account_id and own.role is distinct from 'owner'
)
and exists (
select
from accounts a
join accounts c on c.id = r.created_by
where a.id = r.account_id and (c.is_operator or not a.is_operator)
)
))
;
select
p.id, p.name, p.email, p.is_operator, m.role, m.created_at as joined_at,
(select max(s.last_seen_at) from sessions s where s.account_id = p.id) as last_seen_at
from memberships m
join accounts p on p.id = m.account_id
where m.organization_id = $1 and m.account_id = $2
order by m.account_id
limit $3
;
select
p.id, p.name, p.email, p.is_operator, m.role, m.created_at as joined_at,
(select max(s.last_seen_at) from sessions s where s.account_id = p.id) as last_seen_at
from memberships m
join accounts p on p.id = m.account_id
where m.organization_id = $1 and m.account_id > $2
order by m.account_id
limit $3
;
select
p.id, p.name, p.email, p.is_operator, m.role, m.created_at as joined_at,
(select max(s.last_seen_at) from sessions s where s.account_id = p.id) as last_seen_at
from memberships m
join accounts p on p.id = m.account_id
where m.organization_id = $1
order by m.account_id
limit $2
;
select p.id, p.password_hash, d.id as device_id
from accounts p
left join known_devices d on d.hash = decode($1, 'hex') and d.account_id = p.id
where p.email = $2
;
select
p.name, p.keep_days, p.created_at, o.id as organization_id, o.name as organization,
l.last_seq as head
from projects p
join organizations o on o.id = p.organization_id
join event_logs l on l.project_id = p.id
where p.id = $1 and p.deleted_at is null
;
select p.organization_id, e.project_id, e.user_id
from erasures e
join projects p on p.id = e.project_id and p.deleted_at is null
where e.touched_at < now() - interval '10 s'
order by e.touched_at
limit $1
;
select
p.password_hash is not null and is_password_usable(p.id) as has_password,
(
select count(*)::int from passkeys k where k.account_id = p.id and k.disabled_at is null
) as passkeys,
exists (
select from totp_secrets t where t.account_id = p.id and t.confirmed_at is not null
) as has_second_factor,
(
select count(*)::int from recovery_codes c where c.account_id = p.id and c.used_at is null
) as recovery_codes
from accounts p
where p.id = $1
;
select password_hash is not null as has_password from accounts where id = $1
;
select pg_advisory_xact_lock(hashtextextended($1, 0))
;
select pg_has_role(current_user, 'pg_monitor', 'usage') as "canMonitor"
;
select pg_notify($1, $2)
;
select pg_notify($1, 'heartbeat')
;
select pg_try_advisory_lock($1::bigint) as is_alone
;
select project_id as "projectId", segment, last_at::text as "lastAt"
from stale_segments
where last_at < now() - make_interval(secs => $1)
or first_at < now() - make_interval(secs => $2)
limit $3
;
select project_id, organization_id from list_unindexed_projects()
;
select provider, kind, value, role
from sign_in_rules
where organization_id = $1
order by provider, kind, value
;
select public_id, name, icon, created_at
from channels
where project_id = $1 and id < $2
order by id desc
limit $3
;
select public_id, name, icon, created_at
from channels
where project_id = $1
order by id desc
limit $2
;
select purge_events($1, $2::timestamptz, $3)
;
select r.id
from projects r
join organizations o on o.id = r.organization_id and o.deleted_at is null
join memberships m on m.organization_id = o.id and m.account_id = $1
where r.id = any($2::uuid[]) and r.deleted_at is null
and o.id = coalesce($3, o.id)
;
select r.id, r.account_id, p.name, c.name as created_by, r.created_at, r.expires_at
from memberships m
join reset_links r on r.account_id = m.account_id
join accounts p on p.id = r.account_id
left join accounts c on c.id = r.created_by
where m.organization_id = $1 and r.id < $2
and r.expires_at > now() and (r.created_by is null or (
exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
where theirs.account_id = r.account_id and theirs.organization_id = r.organization_id
)
and not exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
left join memberships own
on own.organization_id = theirs.organization_id and own.account_id = r.created_by
where theirs.account_id = r.account_id and own.role is distinct from 'owner'
)
and exists (
select
from accounts a
join accounts c on c.id = r.created_by
where a.id = r.account_id and (c.is_operator or not a.is_operator)
)
)) and (
r.organization_id = $3 or (
exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
where theirs.account_id = r.account_id and theirs.organization_id = $4::uuid
)
and not exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
left join memberships own
on own.organization_id = theirs.organization_id and own.account_id = $5::uuid
where theirs.account_id = r.account_id and own.role is distinct from 'owner'
)
and exists (
select
from accounts a
join accounts c on c.id = $6::uuid
where a.id = r.account_id and (c.is_operator or not a.is_operator)
)
)
)
order by r.id desc
limit $7
;
select r.id, r.account_id, p.name, c.name as created_by, r.created_at, r.expires_at
from memberships m
join reset_links r on r.account_id = m.account_id
join accounts p on p.id = r.account_id
left join accounts c on c.id = r.created_by
where m.organization_id = $1 and true
and r.expires_at > now() and (r.created_by is null or (
exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
where theirs.account_id = r.account_id and theirs.organization_id = r.organization_id
)
and not exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
left join memberships own
on own.organization_id = theirs.organization_id and own.account_id = r.created_by
where theirs.account_id = r.account_id and own.role is distinct from 'owner'
)
and exists (
select
from accounts a
join accounts c on c.id = r.created_by
where a.id = r.account_id and (c.is_operator or not a.is_operator)
)
)) and (
r.organization_id = $2 or (
exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
where theirs.account_id = r.account_id and theirs.organization_id = $3::uuid
)
and not exists (
select
from
memberships theirs
join organizations o on o.id = theirs.organization_id and o.deleted_at is null
left join memberships own
on own.organization_id = theirs.organization_id and own.account_id = $4::uuid
where theirs.account_id = r.account_id and own.role is distinct from 'owner'
)
and exists (
select
from accounts a
join accounts c on c.id = $5::uuid
where a.id = r.account_id and (c.is_operator or not a.is_operator)
)
)
)
order by r.id desc
limit $6
;
select r.organization_id, r.role
from sign_in_rules r
join organizations o on o.id = r.organization_id and o.deleted_at is null
where r.provider = $1 and (
r.kind = 'group' and r.value = any($2::text[])
or r.kind = 'domain' and r.value = $3
)
;
select reap($1) as found
;
select reindex_segment($1, $2, $3) as is_done
;
select renew_epoch()
;
select repeat_erasure($1, $2, $3, $4::text[])
;
select s.account_id, p.email, s.is_installed
from sign_in_steps s
join accounts p on p.id = s.account_id
where s.hash = decode($1, 'hex') and s.expires_at > now()
;
select
s.id as key, s.created_at as "createdAt", s.last_seen_at as "lastSeenAt", s.verified_at as "verifiedAt",
s.method, s.is_installed as "isInstalled", s.address, s.user_agent as "userAgent"
from sessions s
where s.account_id = $1 and s.id > $2 and not is_session_expired(
s.is_installed and exists (
select from push_subscriptions b where b.session_id = s.id and b.is_proven
),
s.created_at, s.last_seen_at
)
order by s.id
limit $3
;
select
s.id, s.method, s.is_installed, s.is_multi_factor, s.created_at, s.last_seen_at, s.address,
s.user_agent
from sessions s
where s.account_id = $1
and not is_session_expired(
s.is_installed and exists (
select from push_subscriptions b where b.session_id = s.id and b.is_proven
),
s.created_at, s.last_seen_at
)
order by s.id desc
limit $2
;
select
s.id, s.method, s.is_installed, s.is_multi_factor, s.created_at, s.last_seen_at, s.address,
s.user_agent
from sessions s
where s.account_id = $1 and s.id < $2
and not is_session_expired(
s.is_installed and exists (
select from push_subscriptions b where b.session_id = s.id and b.is_proven
),
s.created_at, s.last_seen_at
)
order by s.id desc
limit $3
;
select sealed from sealed_canary
;
select seq from restore_events($1, array[$2::bigint]) as r (seq)
;
select seq from search_cursors where project_id = $1
;
select seq, case
when deleted_at is null then 'there'
when deleted_at > clock_timestamp() - make_interval(secs => $1) then 'hidden'
else 'gone'
end as state
from events
where project_id = $2 and id = $3
;
select set_config('statement_timeout', '0', true)
;
select set_config('tidings.account', $1, true)
;
select settle_deliveries(
$1::uuid[], $2::uuid[],
$3::text[], $4::int[],
$5::float8[], $6::text[],
$7::bigint[]
) as id
;
select setval(pg_get_serial_sequence('alias_changes', 'id'), coalesce(max(id), 0) + 1, false)
from alias_changes
;
select
t.expires_at, o.id as organization_id, o.name as organization, m.role, r.id as project_id,
r.name as project
from management_tokens t
left join memberships m on m.account_id = t.account_id
and m.organization_id = coalesce(t.organization_id, m.organization_id)
left join organizations o on o.id = m.organization_id and o.deleted_at is null
left join projects r on r.organization_id = o.id and r.deleted_at is null
and (t.project_ids is null or r.id = any(t.project_ids))
where t.id = $1
order by o.id, r.id
;
select
t.id as key, t.organization_id, t.name, t.role, t.last_four as "lastFour", t.created_at as "createdAt",
t.last_used_at as "lastUsedAt", t.expires_at as "expiresAt"
from management_tokens t
where t.account_id = $1 and t.id > $2
order by t.id
limit $3
;
select
t.id, t.name, t.last_four, t.role, t.project_ids is not null as is_limited, (
select json_agg(json_build_object('id', r.id, 'name', r.name) order by r.id)::text
from projects r
join memberships m on m.organization_id = r.organization_id and m.account_id = t.account_id
where r.id = any(t.project_ids) and r.deleted_at is null
) as projects,
p.id as account_id, p.name as account, t.created_at, t.last_used_at, t.expires_at,
t.expires_at <= now() as is_expired
from management_tokens t
join accounts p on p.id = t.account_id
where t.account_id = $1 and t.organization_id is null and t.id < $2
order by t.id desc
limit $3
;
select
t.id, t.name, t.last_four, t.role, t.project_ids is not null as is_limited, (
select json_agg(json_build_object('id', r.id, 'name', r.name) order by r.id)::text
from projects r
join memberships m on m.organization_id = r.organization_id and m.account_id = t.account_id
where r.id = any(t.project_ids) and r.deleted_at is null
) as projects,
p.id as account_id, p.name as account, t.created_at, t.last_used_at, t.expires_at,
t.expires_at <= now() as is_expired
from management_tokens t
join accounts p on p.id = t.account_id
where t.account_id = $1 and t.organization_id is null and t.id = $2
order by t.id desc
limit $3
;
select
t.id, t.name, t.last_four, t.role, t.project_ids is not null as is_limited, (
select json_agg(json_build_object('id', r.id, 'name', r.name) order by r.id)::text
from projects r
join memberships m on m.organization_id = r.organization_id and m.account_id = t.account_id
where r.id = any(t.project_ids) and r.deleted_at is null
) as projects,
p.id as account_id, p.name as account, t.created_at, t.last_used_at, t.expires_at,
t.expires_at <= now() as is_expired
from management_tokens t
join accounts p on p.id = t.account_id
where t.account_id = $1 and t.organization_id is null
order by t.id desc
limit $2
;
select
t.id, t.name, t.last_four, t.role, t.project_ids is not null as is_limited, (
select json_agg(json_build_object('id', r.id, 'name', r.name) order by r.id)::text
from projects r
join memberships m on m.organization_id = r.organization_id and m.account_id = t.account_id
where r.id = any(t.project_ids) and r.deleted_at is null
) as projects,
p.id as account_id, p.name as account, t.created_at, t.last_used_at, t.expires_at,
t.expires_at <= now() as is_expired
from management_tokens t
join accounts p on p.id = t.account_id
where t.organization_id = $1 and t.id < $2
order by t.id desc
limit $3
;
select
t.id, t.name, t.last_four, t.role, t.project_ids is not null as is_limited, (
select json_agg(json_build_object('id', r.id, 'name', r.name) order by r.id)::text
from projects r
join memberships m on m.organization_id = r.organization_id and m.account_id = t.account_id
where r.id = any(t.project_ids) and r.deleted_at is null
) as projects,
p.id as account_id, p.name as account, t.created_at, t.last_used_at, t.expires_at,
t.expires_at <= now() as is_expired
from management_tokens t
join accounts p on p.id = t.account_id
where t.organization_id = $1 and t.id = $2
order by t.id desc
limit $3
;
select
t.id, t.name, t.last_four, t.role, t.project_ids is not null as is_limited, (
select json_agg(json_build_object('id', r.id, 'name', r.name) order by r.id)::text
from projects r
join memberships m on m.organization_id = r.organization_id and m.account_id = t.account_id
where r.id = any(t.project_ids) and r.deleted_at is null
) as projects,
p.id as account_id, p.name as account, t.created_at, t.last_used_at, t.expires_at,
t.expires_at <= now() as is_expired
from management_tokens t
join accounts p on p.id = t.account_id
where t.organization_id = $1
order by t.id desc
limit $2
;
select
t.ord::int as ord, r.account_id as "accountId", r.address, r.endpoint_hash as "endpointHash",
clock_timestamp() as now, r.is_on as "isOn", r.is_muted as "isMuted", r.is_archived as "isArchived",
r.is_hidden as "isHidden", r.is_summary as "isSummary", r.quiet, r.event
from unnest(
$1::uuid[],
$2::uuid[],
$3::uuid[]
) with ordinality as t (project_id, event_id, id, ord)
cross join lateral (
select
d.account_id, d.address, encode(d.endpoint_hash, 'hex') as endpoint_hash, d.is_on,
json_build_array(d.quiet_from, d.quiet_to, d.quiet_zone) as quiet,
e.event, e.is_archived, e.is_hidden, n.is_muted,
exists (
select
from delivery_records r
where r.project_id = t.project_id and r.event_id = t.event_id and r.kind = 'push'
and r.target_id = d.id and r.state = 'withheld' and r.reason = $4
) as is_summary
from push_subscriptions d
join sessions s on s.id = d.session_id and not is_session_expired(
s.is_installed and exists (
select from push_subscriptions b where b.session_id = s.id and b.is_proven
),
s.created_at, s.last_seen_at
)
left join lateral (
select
c.id as channel_id, c.is_archived, v.deleted_at is not null as is_hidden,
json_build_object(
'project', p.name, 'channelId', c.id, 'channel', c.name, 'title', v.title,
'description', v.description, 'icon', v.icon
) as event
from projects p
join organizations o on o.id = p.organization_id and o.deleted_at is null
and not lacks_second_factor(o.requires_second_factor, s.is_multi_factor)
join memberships m on m.organization_id = o.id and m.account_id = d.account_id
join events v on v.project_id = p.id and v.id = t.event_id
join channels c on c.project_id = v.project_id and c.id = v.channel_id
where p.id = t.project_id and p.deleted_at is null
) e on true
cross join lateral effective_notification_settings(t.project_id, e.channel_id, d.account_id) n
where d.id = t.id
offset 0
) r
;
select to_regclass('migrations')::text as name
;
select type from webhooks where project_id = $1 and id = $2
;
select u.events, u.erased_at, u.key_id, k.name
from erased_names n
join erased_users u on u.id = n.erased_user_id
left join api_keys k on k.id = u.key_id
where n.project_id = $1 and n.is_user_id
and n.hash = decode($2, 'hex')
order by u.erased_at desc
limit 1
;
select u.id, u.erased_at, u.key_id, n.name
from erasure_names n
join erasures e on e.project_id = n.project_id and e.user_id = n.user_id
join erased_users u on u.id = e.id
where n.project_id = $1 and n.user_id = $2 and not n.is_listed
limit $3
;
select u.id, u.project_id, n.is_user_id, encode(n.hash, 'hex') as hash, u.erased_at, u.key_id
from erased_users u
join erased_names n on n.erased_user_id = u.id
where u.id = any($1::uuid[])
;
select uncount_attempt($1, $2, $3)
;
select user_id as name from identities where project_id = $1
union select alias from aliases where project_id = $2
union select user_ref from events where project_id = $3 and user_ref is not null
union select user_id from idempotency_keys where project_id = $4 and user_id is not null
union select unnest(other_names) from idempotency_keys where project_id = $5
union select user_id from alias_changes where project_id = $6
union select alias from alias_changes where project_id = $7
union select other from alias_changes where project_id = $8 and other is not null
;
select user_id
from identities
where project_id = $1 and user_id = coalesce(
(select user_id from identities where project_id = $2 and user_id = $3),
(select user_id from aliases where project_id = $4 and alias = $5)
)
;
select
w.id, w.name, w.url, w.host, w.type, w.preset, w.has_all_channels,
(
select string_agg(c.public_id, ' ' order by c.id)
from webhook_channels wc
join channels c on c.project_id = wc.project_id and c.id = wc.channel_id
where wc.project_id = w.project_id and wc.webhook_id = w.id
) as channels,
case when w.previous_until > now() then w.previous_until end as previous_until,
w.created_at, w.updated_at, w.disabled_at, w.disabled_reason,
w.failures, w.failing_since, w.paused_until, w.backlog_full_at, now() as now
from webhooks w
where w.project_id = $1 and w.deleted_at is null and w.id < $2 order by w.id desc limit $3
;
select
w.id, w.name, w.url, w.host, w.type, w.preset, w.has_all_channels,
(
select string_agg(c.public_id, ' ' order by c.id)
from webhook_channels wc
join channels c on c.project_id = wc.project_id and c.id = wc.channel_id
where wc.project_id = w.project_id and wc.webhook_id = w.id
) as channels,
case when w.previous_until > now() then w.previous_until end as previous_until,
w.created_at, w.updated_at, w.disabled_at, w.disabled_reason,
w.failures, w.failing_since, w.paused_until, w.backlog_full_at, now() as now
from webhooks w
where w.project_id = $1 and w.deleted_at is null and w.id = $2
;
select
w.id, w.name, w.url, w.host, w.type, w.preset, w.has_all_channels,
(
select string_agg(c.public_id, ' ' order by c.id)
from webhook_channels wc
join channels c on c.project_id = wc.project_id and c.id = wc.channel_id
where wc.project_id = w.project_id and wc.webhook_id = w.id
) as channels,
case when w.previous_until > now() then w.previous_until end as previous_until,
w.created_at, w.updated_at, w.disabled_at, w.disabled_reason,
w.failures, w.failing_since, w.paused_until, w.backlog_full_at, now() as now
from webhooks w
where w.project_id = $1 and w.deleted_at is null  order by w.id desc limit $2
;
select w.url, p.name as project, o.id as organization_id, o.name as organization
from webhooks w
join projects p on p.id = w.project_id
join organizations o on o.id = p.organization_id
where w.project_id = $1 and w.id = $2 and w.deleted_at is null
;
update accounts set is_email_proven = true, password_hash = null
where id = $1 and not is_email_proven
;
update accounts set
name = coalesce($1, name),
email = coalesce($2, email),
is_email_proven = is_email_proven and not $3
where id = $4
returning name, email
;
update accounts set
password_hash = $1,
is_password_from_machine = $2
where id = $3
returning email
;
update accounts set password_hash = $1, is_password_from_machine = false
where id = $2
;
update accounts set password_hash = null where id = $1 and password_hash is not null
;
update aliases set
user_id = $1,
created_at = date_trunc('milliseconds', clock_timestamp())
where project_id = $2 and alias = $3 and user_id = $4
returning created_at
;
update api_keys k set
name = coalesce($1, k.name),
rate_limit = coalesce($2::int, k.rate_limit)
where k.project_id = $3 and k.id = $4
;
update api_keys set
expires_at = least(expires_at, now() + make_interval(secs => $1)),
is_printed = false
where id = $2
;
update api_keys set revoked_at = now() where id = $1
;
update api_keys set revoked_at = now()
where id in (
select id
from api_keys
where project_id = any($1::uuid[]) and revoked_at is null
order by id
for no key update
)
;
update channels set
name = coalesce($1, name),
icon = $2,
description = $3,
is_archived = coalesce($4, is_archived),
keep_days = $5
where project_id = $6 and id = $7
;
update channels set
name = coalesce($1, name),
icon = $2,
description = $3,
is_archived = coalesce($4, is_archived),
keep_days = keep_days
where project_id = $5 and id = $6
;
update channels set
name = coalesce($1, name),
icon = $2,
description = description,
is_archived = coalesce($3, is_archived),
keep_days = keep_days
where project_id = $4 and id = $5
;
update channels set
name = coalesce($1, name),
icon = icon,
description = $2,
is_archived = coalesce($3, is_archived),
keep_days = $4
where project_id = $5 and id = $6
;
update channels set
name = coalesce($1, name),
icon = icon,
description = $2,
is_archived = coalesce($3, is_archived),
keep_days = keep_days
where project_id = $4 and id = $5
;
update channels set
name = coalesce($1, name),
icon = icon,
description = description,
is_archived = coalesce($2, is_archived),
keep_days = $3
where project_id = $4 and id = $5
;
update channels set
name = coalesce($1, name),
icon = icon,
description = description,
is_archived = coalesce($2, is_archived),
keep_days = keep_days
where project_id = $3 and id = $4
;
update delivery_cursors c set seq = r.to_seq
from unnest($1::uuid[], $2::bigint[]) as r (project_id, to_seq)
where c.project_id = r.project_id and c.kind = $3
;
update erasure_names set is_listed = true
where project_id = $1 and user_id = $2
and name = any($3::text[])
;
update installation set are_passwords_off = $1
where are_passwords_off <> $2
;
update known_devices set hash = decode($1, 'hex')
where hash = decode($2, 'hex')
;
update memberships set provider = null where provider = $1
;
update memberships set role = $1
where organization_id = $2 and account_id = $3
;
update openid_connections set last_used_at = now()
where issuer = $1 and subject = $2
returning account_id
;
update openid_providers set
label = coalesce($1, label),
client_id = coalesce($2, client_id),
client_secret = coalesce($3, client_secret),
scopes = coalesce($4, scopes),
groups_claim = coalesce($5, groups_claim),
is_trusted = coalesce($6, is_trusted)
where id = $7
;
update organizations set deleted_at = now() where id = $1 returning name
;
update organizations set name = $1 where id = $2
;
update organizations set requires_second_factor = $1
where id = $2 and requires_second_factor <> $3
;
update passkeys set counter = $1, is_synced = $2, last_used_at = now()
where id = $3
;
update passkeys set disabled_at = now() where id = $1
;
update passkeys set name = $1 where id = $2 and account_id = $3
;
update projects set deleted_at = now() where id = any($1::uuid[])
;
update projects set
name = coalesce($1, name),
keep_days = case when $2 then keep_days else $3::int end
where id = $4
;
update push_bursts set summary_at = null
where project_id = $1 and channel_id = $2 and account_id = $3
and collapsed > 0
returning collapsed, burst_at
;
update push_subscriptions set
label = coalesce($1, label),
is_on = coalesce($2, is_on),
quiet_from = case when $3 then quiet_from else $4::int end,
quiet_to = case when $5 then quiet_to else $6::int end,
quiet_zone = case when $7 then quiet_zone else $8::text end
where id = $9 and account_id = $10
;
update push_subscriptions set
last_push_at = now(),
last_outcome = $1,
is_proven = is_proven or $2 = 'accepted',
refusals = case $3 when 'accepted' then 0 when 'refused' then refusals + 1 else refusals end,
flagged = case $4 when 'accepted' then null when 'refused' then $5 else flagged end
where id = $6 and endpoint_hash = decode($7, 'hex')
returning refusals
;
update push_subscriptions set tested_at = now() where id = $1
;
update recovery_codes set used_at = now()
where account_id = $1 and hash = decode($2, 'hex')
and used_at is null
;
update scheduled_backups set succeeded_at = $1, file = $2, problem = null
;
update sessions set
hash = decode($1, 'hex'),
verified_at = case when $2 then now() else verified_at end,
is_multi_factor = is_multi_factor or $3
where id = $4 and hash = decode($5, 'hex')
;
update sessions set hash = sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()))
;
update sessions set verified_at = least(now(), to_timestamp($1::float8))
where id = $2
;
update sign_in_failures set last_at = last_at where account = $1 and lane = $2
;
update totp_secrets set confirmed_at = now() where account_id = $1
;
update totp_secrets set last_step = $1 where id = $2
;
update webhooks set
deleted_at = now(), url = null, secret = null, previous_secret = null, previous_until = null
where project_id = $1 and id = $2 and deleted_at is null
returning host
;
update webhooks set disabled_at = now(), disabled_reason = $1, updated_at = now()
where project_id = $2 and id = $3
;
update webhooks set
disabled_at = null, disabled_reason = null,
failures = 0, failing_since = null, pauses = 0, paused_until = null, updated_at = now()
where project_id = $1 and id = $2 and deleted_at is null
;
update webhooks set
failures = $1,
failing_since = $2,
pauses = $3,
paused_until = $4,
disabled_at = case when $5::text is null then disabled_at else now() end,
disabled_reason = coalesce($6, disabled_reason)
where project_id = $7 and id = $8
;
update webhooks set
failures = $1, failing_since = null, pauses = $2, paused_until = null
where project_id = $3 and id = $4 and (failures > 0 or paused_until is not null)
;
update webhooks set
name = $1, url = $2, host = $3, preset = $4,
has_all_channels = $5,
updated_at = now()
where project_id = $6 and id = $7
;
update webhooks set
name = $1, url = $2, host = $3, preset = $4,
updated_at = now()
where project_id = $5 and id = $6
;
update webhooks set
secret = $1,
previous_secret = $2,
previous_until = case when $3 then now() + make_interval(hours => $4) end,
updated_at = now()
where project_id = $5 and id = $6
returning previous_until
;
update webhooks set tested_at = now() where project_id = $1 and id = $2
;
update webhooks w set backlog_full_at = null
where w.backlog_full_at is not null and not exists (
select from outbox o
where o.kind = 'webhook' and o.target_id = w.id
order by o.available_at
limit 1 offset $1
)
;
with candidates as materialized (
select e.seq
from events e
where e.project_id = $1 and e.seq between $2 and $3::bigint
order by e.seq desc
limit $4
)
select
(select count(*)::int from candidates) as candidates,
(select min(seq) from candidates) as last_seq,
texts_of_events($5, array(
select candidates.seq
from candidates
cross join lateral (
select
from events e
where e.project_id = $6 and e.seq = candidates.seq
and
e.deleted_at is null
and e.channel_id <> all($7::uuid[])
and e.tags @> $8::text[]
offset 0
) e
order by candidates.seq desc
limit $9
), $10) as texts
;
with candidates as materialized (
select e.seq
from events e
where e.project_id = $1 and e.seq between $2 and $3::bigint
order by e.seq desc
limit $4
)
select
(select count(*)::int from candidates) as candidates,
(select min(seq) from candidates) as last_seq,
texts_of_events($5, array(
select candidates.seq
from candidates
cross join lateral (
select
from events e
where e.project_id = $6 and e.seq = candidates.seq
and
e.deleted_at is null
and words_of_event(e.title, e.description) @@ (select to_tsquery('simple', $7))
offset 0
) e
order by candidates.seq desc
limit $8
), $9) as texts
;
with candidates as materialized (
select e.seq
from events e
where e.project_id = $1 and e.seq between $2 and coalesce(
(
select e.seq
from events e
where e.project_id = $3 and e.seq between $4 and $5
and (e.occurred_at < $6) is true
order by e.seq desc
limit 1
),
$7::bigint
)
order by e.seq desc
limit $8
)
select
(select count(*)::int from candidates) as candidates,
(select min(seq) from candidates) as last_seq,
texts_of_events($9, array(
select candidates.seq
from candidates
cross join lateral (
select
from events e
where e.project_id = $10 and e.seq = candidates.seq
and
e.deleted_at is null
and (e.occurred_at < $11) is true
offset 0
) e
order by candidates.seq desc
limit $12
), $13) as texts
;
with candidates as materialized (
select e.seq
from events e
where e.project_id = $1 and e.seq between $2 and coalesce(
(
select e.seq
from events e
where e.project_id = $3 and e.seq between $4 and $5
and (e.occurred_at < $6) is true
order by e.seq desc
limit 1
),
$7::bigint
)
order by e.seq desc
limit $8
)
select
(select count(*)::int from candidates) as candidates,
(select min(seq) from candidates) as last_seq,
texts_of_events($9, array(
select candidates.seq
from candidates
cross join lateral (
select
from events e
where e.project_id = $10 and e.seq = candidates.seq
and
e.deleted_at is null
and words_of_event(e.title, e.description) @@ (select to_tsquery('simple', $11))
and (e.occurred_at < $12) is true
offset 0
) e
order by candidates.seq desc
limit $13
), $14) as texts
;
with candidates as materialized (
select e.seq
from events e
where e.project_id = $1 and e.seq between $2 and coalesce(
(
select e.seq
from events e
where e.project_id = $3 and e.seq between $4 and $5
and (e.occurred_at >= $6) is true
and (e.occurred_at < $7) is true
order by e.seq desc
limit 1
),
$8::bigint
)
order by e.seq desc
limit $9
)
select
(select count(*)::int from candidates) as candidates,
(select min(seq) from candidates) as last_seq,
texts_of_events($10, array(
select candidates.seq
from candidates
cross join lateral (
select
from events e
where e.project_id = $11 and e.seq = candidates.seq
and
e.deleted_at is null
and (e.occurred_at >= $12) is true
and (e.occurred_at < $13) is true
offset 0
) e
order by candidates.seq desc
limit $14
), $15) as texts
;
with candidates as materialized (
select e.seq
from events e
where e.project_id = $1 and e.seq between $2 and coalesce(
(
select e.seq
from events e
where e.project_id = $3 and e.seq between $4 and $5
and (e.occurred_at >= $6) is true
and (e.occurred_at < $7) is true
order by e.seq desc
limit 1
),
$8::bigint
)
order by e.seq desc
limit $9
), met as (
select e.channel_id, e.bucket, count(*)::float8 as n
from candidates
cross join lateral (
select e.channel_id, floor((date_part('epoch', e.occurred_at) * 1000 - $10::float8) / $11::float8)::int as bucket
from events e
where e.project_id = $12 and e.seq = candidates.seq
and
e.deleted_at is null
and e.tags @> $13::text[]
and (e.occurred_at >= $14) is true
and (e.occurred_at < $15) is true
offset 0
) e
group by 1, 2
), seen as (
select count(*)::int as candidates, min(seq) as last_seq from candidates
)
select seen.candidates, seen.last_seq, met.channel_id as "channelId", met.bucket, met.n
from seen
left join met on true
;
with candidates as materialized (
select e.seq
from events e
where e.project_id = $1 and e.seq between $2 and coalesce(
(
select e.seq
from events e
where e.project_id = $3 and e.seq between $4 and $5
and (e.occurred_at >= $6) is true
and (e.occurred_at < $7) is true
order by e.seq desc
limit 1
),
$8::bigint
)
order by e.seq desc
limit $9
), met as (
select e.channel_id, e.bucket, count(*)::float8 as n
from candidates
cross join lateral (
select e.channel_id, floor((date_part('epoch', e.occurred_at) * 1000 - $10::float8) / $11::float8)::int as bucket
from events e
where e.project_id = $12 and e.seq = candidates.seq
and
e.deleted_at is null
and words_of_event(e.title, e.description) @@ (select to_tsquery('simple', $13))
and (e.occurred_at >= $14) is true
and (e.occurred_at < $15) is true
offset 0
) e
group by 1, 2
), seen as (
select count(*)::int as candidates, min(seq) as last_seq from candidates
)
select seen.candidates, seen.last_seq, met.channel_id as "channelId", met.bucket, met.n
from seen
left join met on true
;
with candidates as materialized (
select e.seq
from events e
where e.project_id = $1 and e.seq between $2 and coalesce(
(
select e.seq
from events e
where e.project_id = $3 and e.seq between $4 and $5
and (e.occurred_at >= $6) is true
order by e.seq desc
limit 1
),
$7::bigint
)
order by e.seq desc
limit $8
)
select
(select count(*)::int from candidates) as candidates,
(select min(seq) from candidates) as last_seq,
texts_of_events($9, array(
select candidates.seq
from candidates
cross join lateral (
select
from events e
where e.project_id = $10 and e.seq = candidates.seq
and
e.deleted_at is null
and (e.occurred_at >= $11) is true
offset 0
) e
order by candidates.seq desc
limit $12
), $13) as texts
;
with candidates as materialized (
select e.seq
from events e
where e.project_id = $1 and e.seq between $2 and coalesce(
(
select e.seq
from events e
where e.project_id = $3 and e.seq between $4 and $5
and (e.occurred_at >= $6) is true
order by e.seq desc
limit 1
),
$7::bigint
)
order by e.seq desc
limit $8
)
select
(select count(*)::int from candidates) as candidates,
(select min(seq) from candidates) as last_seq,
texts_of_events($9, array(
select candidates.seq
from candidates
cross join lateral (
select
from events e
where e.project_id = $10 and e.seq = candidates.seq
and
e.deleted_at is null
and words_of_event(e.title, e.description) @@ (select to_tsquery('simple', $11))
and (e.occurred_at >= $12) is true
offset 0
) e
order by candidates.seq desc
limit $13
), $14) as texts
;
with candidates as materialized (
select e.seq
from events e
where e.project_id = $1 and e.seq between $2::bigint and $3
order by e.seq asc
limit $4
)
select
(select count(*)::int from candidates) as candidates,
(select max(seq) from candidates) as last_seq,
texts_of_events($5, array(
select candidates.seq
from candidates
cross join lateral (
select
from events e
where e.project_id = $6 and e.seq = candidates.seq
and
e.deleted_at is null
and words_of_event(e.title, e.description) @@ (select to_tsquery('simple', $7))
offset 0
) e
order by candidates.seq asc
limit $8
), $9) as texts
;
with candidates as materialized (
select e.seq
from events e
where e.project_id = $1 and e.seq between coalesce(
(
select e.seq
from events e
where e.project_id = $2 and e.seq between $3 and $4
and (e.occurred_at >= $5) is true
order by e.seq asc
limit 1
),
$6::bigint
) and $7
order by e.seq asc
limit $8
)
select
(select count(*)::int from candidates) as candidates,
(select max(seq) from candidates) as last_seq,
texts_of_events($9, array(
select candidates.seq
from candidates
cross join lateral (
select
from events e
where e.project_id = $10 and e.seq = candidates.seq
and
e.deleted_at is null
and words_of_event(e.title, e.description) @@ (select to_tsquery('simple', $11))
and (e.occurred_at >= $12) is true
offset 0
) e
order by candidates.seq asc
limit $13
), $14) as texts
;
with candidates as materialized (
select found.seq
from unnest($1::text[]) as asked (reference)
cross join lateral (
select e.seq
from events e
where e.project_id = $2 and e.user_ref is not null
and (e.user_ref, e.seq) >= (asked.reference, $3::bigint)
and (e.user_ref, e.seq) <= (asked.reference, $4::bigint)
order by e.user_ref asc, e.seq asc
limit $5
) found
order by found.seq asc
limit $6
)
select
(select count(*)::int from candidates) as candidates,
(select max(seq) from candidates) as last_seq,
texts_of_events($7, array(
select candidates.seq
from candidates
cross join lateral (
select
from events e
where e.project_id = $8 and e.seq = candidates.seq
and
e.deleted_at is null
and e.channel_id = any($9::uuid[])
and e.user_ref = any($10::text[])
and e.source = any($11::text[])
and e.tags @> $12::text[]
and words_of_event(e.title, e.description) @@ (select to_tsquery('simple', $13))
offset 0
) e
order by candidates.seq asc
limit $14
), $15) as texts
;
with candidates as materialized (
select found.seq
from unnest($1::text[]) as asked (reference)
cross join lateral (
select e.seq
from events e
where e.project_id = $2 and e.user_ref is not null
and (e.user_ref, e.seq) >= (asked.reference, $3::bigint)
and (e.user_ref, e.seq) <= (asked.reference, $4::bigint)
order by e.user_ref desc, e.seq desc
limit $5
) found
order by found.seq desc
limit $6
)
select
(select count(*)::int from candidates) as candidates,
(select min(seq) from candidates) as last_seq,
texts_of_events($7, array(
select candidates.seq
from candidates
cross join lateral (
select
from events e
where e.project_id = $8 and e.seq = candidates.seq
and
e.deleted_at is null
and e.channel_id = any($9::uuid[])
and e.user_ref = any($10::text[])
and e.source = any($11::text[])
and e.tags @> $12::text[]
and words_of_event(e.title, e.description) @@ (select to_tsquery('simple', $13))
offset 0
) e
order by candidates.seq desc
limit $14
), $15) as texts
;
with candidates as materialized (
select found.seq
from unnest($1::text[]) as asked (reference)
cross join lateral (
select e.seq
from events e
where e.project_id = $2 and e.user_ref is not null
and (e.user_ref, e.seq) >= (asked.reference, $3::bigint)
and (e.user_ref, e.seq) <= (asked.reference, $4::bigint)
order by e.user_ref desc, e.seq desc
limit $5
) found
order by found.seq desc
limit $6
)
select
(select count(*)::int from candidates) as candidates,
(select min(seq) from candidates) as last_seq,
texts_of_events($7, array(
select candidates.seq
from candidates
cross join lateral (
select
from events e
where e.project_id = $8 and e.seq = candidates.seq
and
e.deleted_at is null
and e.user_ref = any($9::text[])
offset 0
) e
order by candidates.seq desc
limit $10
), $11) as texts
;
with candidates as materialized (
select found.seq
from unnest($1::text[]) as asked (reference)
cross join lateral (
select e.seq
from events e
where e.project_id = $2 and e.user_ref is not null
and (e.user_ref, e.seq) >= (asked.reference, $3::bigint)
and (e.user_ref, e.seq) <= (asked.reference, $4::bigint)
order by e.user_ref desc, e.seq desc
limit $5
) found
order by found.seq desc
limit $6
), met as (
select e.channel_id, e.bucket, count(*)::float8 as n
from candidates
cross join lateral (
select e.channel_id, floor((date_part('epoch', e.occurred_at) * 1000 - $7::float8) / $8::float8)::int as bucket
from events e
where e.project_id = $9 and e.seq = candidates.seq
and
e.deleted_at is null
and e.user_ref = any($10::text[])
and (e.occurred_at >= $11) is true
and (e.occurred_at < $12) is true
offset 0
) e
group by 1, 2
), seen as (
select count(*)::int as candidates, min(seq) as last_seq from candidates
)
select seen.candidates, seen.last_seq, met.channel_id as "channelId", met.bucket, met.n
from seen
left join met on true
;
with candidates as materialized (
select found.seq
from unnest($1::uuid[]) as asked (id)
cross join lateral (
select e.seq
from events e
where e.project_id = $2
and (e.channel_id, e.seq) >= (asked.id, $3::bigint)
and (e.channel_id, e.seq) <= (asked.id, $4::bigint)
order by e.channel_id desc, e.seq desc
limit $5
) found
order by found.seq desc
limit $6
)
select
(select count(*)::int from candidates) as candidates,
(select min(seq) from candidates) as last_seq,
texts_of_events($7, array(
select candidates.seq
from candidates
cross join lateral (
select
from events e
where e.project_id = $8 and e.seq = candidates.seq
and
e.deleted_at is null
and e.channel_id = any($9::uuid[])
and words_of_event(e.title, e.description) @@ (select to_tsquery('simple', $10))
offset 0
) e
order by candidates.seq desc
limit $11
), $12) as texts
;
with chosen as materialized (
select c.project_id, c.id, c.public_id
from channels c
where c.project_id = $1 and not c.is_archived
order by c.id desc
limit $2
), counted as materialized (
select c.public_id, c.id,
count_unread(
c.project_id, c.id,
(
select max(r.seq)
from read_marks r
where r.project_id = $3 and r.account_id = $4
and (r.channel_id = c.id or r.channel_id is null)
),
(
select m.created_at
from projects p
join memberships m on m.organization_id = p.organization_id and m.account_id = $5
where p.id = $6
)
)
as unread
from chosen c
)
select public_id as id, unread
from counted
where unread > 0
order by counted.id desc
;
with found as materialized (
select o.id
from outbox o
where o.kind = $1 and o.target_id = $2 and o.project_id = $3
and o.token is null and o.available_at > now()
order by o.available_at, o.id
limit $4
for update skip locked
)
update outbox o set available_at = now()
from found f
where o.id = f.id
;
with held as materialized (
select o.id
from unnest(
$1::uuid[],
$2::uuid[]
) as i (id, token)
join outbox o on o.id = i.id and o.token = i.token
order by o.id
for update of o
)
update outbox o set available_at = now() + $3::float8 * interval '1 ms'
from held h
where o.id = h.id
returning o.id
;
with kept as materialized (
select c.project_id, c.id
from channels c
join projects p on p.id = c.project_id and p.deleted_at is null
where coalesce(c.keep_days, p.keep_days) is not null
order by c.project_id, c.id
limit $1
)
select
k.project_id, k.id as channel_id,
coalesce(
extract(epoch from retention_cutoff(k.project_id, k.id) - oldest_event_at(k.project_id, k.id)), 0
)::float8 as late_s
from kept k
order by k.project_id, k.id
;
with listed as (
select
o.id, o.name,
case when u.minute = date_trunc('minute', now()) then u.events else 0 end::float8 as events,
case when u.day = date_trunc('day', now(), 'UTC') then u.bytes else 0 end::float8 as bytes
from organizations o
left join organization_usage u on u.organization_id = o.id
where o.deleted_at is null
order by bytes desc, o.created_at
limit $1
)
select
id, name, events, bytes,
(
select count(*)::int
from (
select
from projects p
join channels c on c.project_id = p.id
where p.organization_id = listed.id and p.deleted_at is null
limit $2
) as counted
) as channels,
(
select count(*)::int
from projects p
join webhooks w on w.project_id = p.id
where p.organization_id = listed.id and p.deleted_at is null and w.deleted_at is null
) as webhooks
from listed
order by bytes desc, name
;
with made as materialized (
select a.id, a.hash, min(a.reason) as reason
from unnest(
$1::uuid[],
$2::text[],
$3::text[]
) as a (id, hash, reason)
cross join set_config('synchronous_commit', 'off', true) as committed
group by a.id, a.hash
), free as materialized (
select m.id, m.reason
from made m
cross join lateral (
select d.id
from push_subscriptions d
where d.id = m.id and d.endpoint_hash = decode(m.hash, 'hex')
for no key update skip locked
) d
)
update push_subscriptions d set
last_push_at = now(), last_outcome = f.reason, is_proven = true, refusals = 0, flagged = null
from free f
where d.id = f.id
returning d.id
;
with matching as materialized (
select
e.project_id, e.id as event_id, e.created_at, e.deleted_at, w.id as target_id,
w.backlog_full_at is not null as is_full
from unnest($1::uuid[], $2::bigint[], $3::bigint[])
as r (project_id, from_seq, to_seq)
join events e on e.project_id = r.project_id and e.seq > r.from_seq and e.seq <= r.to_seq
join webhooks w on w.project_id = e.project_id and w.type = 'event.created'
and w.deleted_at is null and w.disabled_at is null
and (
date_trunc('milliseconds', w.created_at) <= e.created_at
or w.created_at > now() + interval '5 s'
)
cross join set_config('plan_cache_mode', 'auto', true) as planned
where (
w.has_all_channels
or exists (
select from webhook_channels wc
where wc.project_id = w.project_id and wc.webhook_id = w.id and wc.channel_id = e.channel_id
)
)
), wanted as (
select project_id, event_id, created_at, deleted_at, target_id
from matching
where not is_full
),
queued as (
insert into outbox (project_id, event_id, kind, target_id)
select project_id, event_id, $4, target_id
from wanted
on conflict (project_id, event_id, kind, target_id) do nothing
returning 1
)
, refused as (
insert into deliveries (project_id, event_id, kind, target_id, state, reason)
select project_id, event_id, 'webhook', target_id, 'failed', $5
from matching
where is_full
on conflict (project_id, event_id, kind, target_id) do nothing
)
select (select count(*)::int from queued) as count, null as leased
;
with matching as materialized (
select
e.project_id, e.id as event_id, e.created_at, e.deleted_at, w.id as target_id,
w.backlog_full_at is not null as is_full
from unnest($1::uuid[], $2::bigint[], $3::bigint[])
as r (project_id, from_seq, to_seq)
join events e on e.project_id = r.project_id and e.seq > r.from_seq and e.seq <= r.to_seq
join webhooks w on w.project_id = e.project_id and w.type = 'event.created'
and w.deleted_at is null and w.disabled_at is null
and (
date_trunc('milliseconds', w.created_at) <= e.created_at
or w.created_at > now() + interval '5 s'
)
cross join set_config('plan_cache_mode', 'auto', true) as planned
where (
w.has_all_channels
or exists (
select from webhook_channels wc
where wc.project_id = w.project_id and wc.webhook_id = w.id and wc.channel_id = e.channel_id
)
)
), wanted as (
select project_id, event_id, created_at, deleted_at, target_id
from matching
where not is_full
),
ranked as materialized (
select
w.*, new_delivery_id() as id,
row_number() over (
partition by w.target_id, w.deleted_at is null order by w.created_at, w.event_id
) as rank
from wanted w
), roomy as materialized (
select
r.*,
r.deleted_at is null and r.rank <= coalesce(b.room, $4::int) as has_room
from ranked r
left join unnest(
$5::uuid[],
$6::int[]
) as b (target_id, room) on b.target_id = r.target_id
), chosen as materialized (
select
r.*,
r.has_room and row_number() over (order by r.has_room desc, r.rank) <= $7::int as is_leased
from roomy r
), queued as (
insert into outbox (id, project_id, event_id, kind, target_id, available_at, token, claim_count)
select
c.id, c.project_id, c.event_id, $8, c.target_id,
case when c.is_leased then now() + $9::float8 * interval '1 ms' else now() end,
case when c.is_leased then $10::uuid end, c.is_leased::int
from chosen c
on conflict (project_id, event_id, kind, target_id) do nothing
returning id
)
, refused as (
insert into deliveries (project_id, event_id, kind, target_id, state, reason)
select project_id, event_id, 'webhook', target_id, 'failed', $11
from matching
where is_full
on conflict (project_id, event_id, kind, target_id) do nothing
)
select
(select count(*)::int from queued) as count,
(
select json_agg(json_build_object(
'id', c.id, 'projectId', c.project_id, 'eventId', c.event_id, 'targetId', c.target_id,
'ageMs', extract(epoch from clock_timestamp() - c.created_at) * 1000
))
from chosen c
join queued q on q.id = c.id
where c.is_leased
) as leased
;
with named as (
select coalesce(coalesce(
(select user_id from identities where project_id = $1 and user_id = $2),
(select user_id from aliases where project_id = $3 and alias = $4)
), $5) as user_id
)
select user_id as reference from named
union
select a.alias
from named n
join aliases a on a.project_id = $6 and a.user_id = n.user_id
where not exists (select from identities i where i.project_id = a.project_id and i.user_id = a.alias)
;
with named as materialized (
select coalesce(coalesce(
(select user_id from identities where project_id = $1 and user_id = $2),
(select user_id from aliases where project_id = $3 and alias = $4)
), $5) as user_id
)
select
n.user_id, i.public_id, i.properties::text as properties, i.created_at, i.updated_at,
(
select coalesce(
json_agg(
json_build_object('alias', a.alias, 'since', to_iso(a.created_at))
order by a.created_at, a.alias
),
'[]'
)::text
from (
select a.alias, a.created_at
from aliases a
where a.project_id = $6 and a.user_id = n.user_id
order by a.created_at, a.alias
limit 1000
) a
) as aliases,
s.events, s.first_at, s.last_at, s.channels
from named n
left join identities i on i.project_id = $7 and i.user_id = n.user_id
cross join lateral user_activity($8, n.user_id) s
;
with named as materialized (
select n.project_id, n.name, coalesce(i.user_id, a.user_id, n.name) as user_id
from unnest(
$1::uuid[],
$2::text[]
) as n (project_id, name)
left join lateral (
select i.user_id from identities i where i.project_id = n.project_id and i.user_id = n.name limit 1
) i on true
left join lateral (
select a.user_id from aliases a where a.project_id = n.project_id and a.alias = n.name limit 1
) a on true
), bounded as materialized (
select
e.project_id, e.id, e.seq, e.channel_id, e.user_ref, e.occurred_at, e.created_at, e.title, e.description, e.icon,
e.tags, e.metadata, e.source, e.notify
, s.wants_lexemes
from unnest(
$3::uuid[],
$4::bigint[],
$5::bigint[],
$6::boolean[]
) as s (project_id, after, until, wants_lexemes)
cross join lateral (
select from event_logs l where l.project_id = s.project_id and l.last_seq > s.after limit 1
) l
cross join lateral (
select
e.project_id, e.id, e.seq, e.channel_id, e.user_ref, e.occurred_at, e.created_at, e.title, e.description, e.icon,
e.tags, e.metadata, e.source, e.notify
from events e
where e.project_id = s.project_id and e.seq > s.after and e.seq <= s.until and e.deleted_at is null
order by e.seq
limit $7
) e
limit $8
), fresh as (
select
*,
sum(bytes_of_event(metadata, description))
over (rows between unbounded preceding and 1 preceding) as bytes_before
from bounded
)
select
e.project_id, e.seq, e.created_at, to_json(e.tags)::text as tags, e.source, t.text,
c.public_id as channel_public_id, c.slug as channel_slug,
(
select json_agg(n.name)::text
from named n
where n.project_id = e.project_id and n.user_id = t.user_id
) as user_names,
case when e.wants_lexemes then
array_to_json(tsvector_to_array(words_of_event(e.title, e.description)))::text
end as lexemes
from fresh e
left join lateral (
select c.public_id, c.name, c.slug
from channels c where c.project_id = e.project_id and c.id = e.channel_id limit 1
) c on true
cross join lateral event_text(
e.project_id, e.id, e.seq, c.public_id, c.name, e.user_ref, e.occurred_at, e.created_at, e.title,
e.description, e.icon, e.tags, e.metadata, e.source, e.notify
) t
where coalesce(e.bytes_before, 0) < $9
order by e.project_id, e.seq
;
with page as materialized (
select
c.project_id, c.id, c.public_id, c.name, c.icon, c.description, c.is_archived, c.keep_days, c.created_at
from channels c
where c.project_id = $1 and c.id = $2
order by c.id desc
limit $3
)
select
c.public_id, c.name, c.icon, c.description, c.is_archived, c.keep_days, c.created_at,
l.seq as last_seq, l.created_at as last_event_at,
count_unread(
c.project_id, c.id,
(
select max(r.seq)
from read_marks r
where r.project_id = $4 and r.account_id = $5
and (r.channel_id = c.id or r.channel_id is null)
),
(
select m.created_at
from projects p
join memberships m on m.organization_id = p.organization_id and m.account_id = $6
where p.id = $7
)
)
as unread,
is_muted(c.project_id, c.id, $8) as is_muted,
(
select json_agg(coalesce(n.n, 0) order by h.hour)::text
from generate_series(hour_of(now()) - interval '23 hours', hour_of(now()), interval '1 hour') as h (hour)
left join event_counts n
on n.project_id = c.project_id and n.hour = h.hour and n.channel_id = c.id
) as today
from page c
left join lateral last_event(c.project_id, c.id) l on true
order by c.id desc
;
with page as materialized (
select
c.project_id, c.id, c.public_id, c.name, c.icon, c.description, c.is_archived, c.keep_days, c.created_at
from channels c
where c.project_id = $1
and not c.is_archived
and c.id < $2
order by c.id desc
limit $3
)
select
c.public_id, c.name, c.icon, c.description, c.is_archived, c.keep_days, c.created_at,
l.seq as last_seq, l.created_at as last_event_at,
count_unread(
c.project_id, c.id,
(
select max(r.seq)
from read_marks r
where r.project_id = $4 and r.account_id = $5
and (r.channel_id = c.id or r.channel_id is null)
),
(
select m.created_at
from projects p
join memberships m on m.organization_id = p.organization_id and m.account_id = $6
where p.id = $7
)
)
as unread,
is_muted(c.project_id, c.id, $8) as is_muted,
(
select json_agg(coalesce(n.n, 0) order by h.hour)::text
from generate_series(hour_of(now()) - interval '23 hours', hour_of(now()), interval '1 hour') as h (hour)
left join event_counts n
on n.project_id = c.project_id and n.hour = h.hour and n.channel_id = c.id
) as today
from page c
left join lateral last_event(c.project_id, c.id) l on true
order by c.id desc
;
with page as materialized (
select
c.project_id, c.id, c.public_id, c.name, c.icon, c.description, c.is_archived, c.keep_days, c.created_at
from channels c
where c.project_id = $1
and not c.is_archived
and strpos(lower(c.name), lower($2)) > 0
order by c.id desc
limit $3
)
select
c.public_id, c.name, c.icon, c.description, c.is_archived, c.keep_days, c.created_at,
l.seq as last_seq, l.created_at as last_event_at,
count_unread(
c.project_id, c.id,
(
select max(r.seq)
from read_marks r
where r.project_id = $4 and r.account_id = $5
and (r.channel_id = c.id or r.channel_id is null)
),
(
select m.created_at
from projects p
join memberships m on m.organization_id = p.organization_id and m.account_id = $6
where p.id = $7
)
)
as unread,
is_muted(c.project_id, c.id, $8) as is_muted,
(
select json_agg(coalesce(n.n, 0) order by h.hour)::text
from generate_series(hour_of(now()) - interval '23 hours', hour_of(now()), interval '1 hour') as h (hour)
left join event_counts n
on n.project_id = c.project_id and n.hour = h.hour and n.channel_id = c.id
) as today
from page c
left join lateral last_event(c.project_id, c.id) l on true
order by c.id desc
;
with page as materialized (
select
c.project_id, c.id, c.public_id, c.name, c.icon, c.description, c.is_archived, c.keep_days, c.created_at
from channels c
where c.project_id = $1
and not c.is_archived
order by c.id desc
limit $2
)
select
c.public_id, c.name, c.icon, c.description, c.is_archived, c.keep_days, c.created_at,
l.seq as last_seq, l.created_at as last_event_at,
count_unread(
c.project_id, c.id,
(
select max(r.seq)
from read_marks r
where r.project_id = $3 and r.account_id = $4
and (r.channel_id = c.id or r.channel_id is null)
),
(
select m.created_at
from projects p
join memberships m on m.organization_id = p.organization_id and m.account_id = $5
where p.id = $6
)
)
as unread,
is_muted(c.project_id, c.id, $7) as is_muted,
(
select json_agg(coalesce(n.n, 0) order by h.hour)::text
from generate_series(hour_of(now()) - interval '23 hours', hour_of(now()), interval '1 hour') as h (hour)
left join event_counts n
on n.project_id = c.project_id and n.hour = h.hour and n.channel_id = c.id
) as today
from page c
left join lateral last_event(c.project_id, c.id) l on true
order by c.id desc
;
with page as materialized (
select
c.project_id, c.id, c.public_id, c.name, c.icon, c.description, c.is_archived, c.keep_days, c.created_at
from channels c
where c.project_id = $1
order by c.id desc
limit $2
)
select
c.public_id, c.name, c.icon, c.description, c.is_archived, c.keep_days, c.created_at,
l.seq as last_seq, l.created_at as last_event_at,
count_unread(
c.project_id, c.id,
(
select max(r.seq)
from read_marks r
where r.project_id = $3 and r.account_id = $4
and (r.channel_id = c.id or r.channel_id is null)
),
(
select m.created_at
from projects p
join memberships m on m.organization_id = p.organization_id and m.account_id = $5
where p.id = $6
)
)
as unread,
is_muted(c.project_id, c.id, $7) as is_muted,
(
select json_agg(coalesce(n.n, 0) order by h.hour)::text
from generate_series(hour_of(now()) - interval '23 hours', hour_of(now()), interval '1 hour') as h (hour)
left join event_counts n
on n.project_id = c.project_id and n.hour = h.hour and n.channel_id = c.id
) as today
from page c
left join lateral last_event(c.project_id, c.id) l on true
order by c.id desc
;
with page as materialized (
select f.id
from find_users(
$1, lower($2), $3, $4, $5
) as f (id)
)
select
i.public_id, i.user_id,
case when octet_length(i.properties::text) <= 4096 then i.properties::text end as properties,
(
select coalesce(json_agg(a.alias order by a.created_at, a.alias), '[]')::text
from (
select a.alias, a.created_at
from aliases a
where a.project_id = i.project_id and a.user_id = i.user_id
order by a.created_at, a.alias
limit 10
) a
) as aliases,
i.created_at, i.updated_at
from page p
join identities i on i.project_id = $6 and i.id = p.id
order by i.id desc
;
with page as materialized (
select i.id
from identities i
where i.project_id = $1 and i.id < $2
order by i.id desc
limit $3
)
select
i.public_id, i.user_id,
case when octet_length(i.properties::text) <= 4096 then i.properties::text end as properties,
(
select coalesce(json_agg(a.alias order by a.created_at, a.alias), '[]')::text
from (
select a.alias, a.created_at
from aliases a
where a.project_id = i.project_id and a.user_id = i.user_id
order by a.created_at, a.alias
limit 10
) a
) as aliases,
i.created_at, i.updated_at
from page p
join identities i on i.project_id = $4 and i.id = p.id
order by i.id desc
;
with page as materialized (
select i.id
from identities i
where i.project_id = $1
order by i.id desc
limit $2
)
select
i.public_id, i.user_id,
case when octet_length(i.properties::text) <= 4096 then i.properties::text end as properties,
(
select coalesce(json_agg(a.alias order by a.created_at, a.alias), '[]')::text
from (
select a.alias, a.created_at
from aliases a
where a.project_id = i.project_id and a.user_id = i.user_id
order by a.created_at, a.alias
limit 10
) a
) as aliases,
i.created_at, i.updated_at
from page p
join identities i on i.project_id = $3 and i.id = p.id
order by i.id desc
;
with recursive ours as (
select c.oid, c.relname::text as name, c.relpersistence = 'p' as is_logged
from unnest($1::text[]) as n (name)
join pg_class c on c.oid = to_regclass(n.name)
), foreign_keys as (
select distinct r.conrelid, r.confrelid
from pg_constraint r
join ours o on o.oid = r.conrelid
where r.contype = 'f' and r.conrelid <> r.confrelid
), depths as (
select o.oid, 0 as depth from ours o
union
select k.conrelid, d.depth + 1
from depths d
join foreign_keys k on k.confrelid = d.oid
where d.depth < 50
)
select
o.name, o.is_logged,
(
select json_agg(a.attname order by a.attnum)::text
from pg_attribute a
where a.attrelid = o.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
) as columns
from ours o
order by (select max(d.depth) from depths d where d.oid = o.oid), o.name
;
with recursive targets as (
(
select o.target_id, o.available_at
from outbox o
where o.kind = $1 and o.target_id > $2
and o.available_at >= '-infinity'
order by o.target_id, o.available_at
limit 1
)
union all
select n.target_id, n.available_at
from targets t
cross join lateral (
select o.target_id, o.available_at
from outbox o
where o.kind = $3 and o.target_id > t.target_id
and o.available_at >= '-infinity'
order by o.target_id, o.available_at
limit 1
) n
)
select
target_id as "targetId", available_at::text as "dueAt",
(least(available_at, now()) - interval '10 s')::text as floor,
(extract(epoch from available_at - now()) * 1000)::float8 as "dueInMs"
from targets
limit $4
;
with recursive targets as (
(
select o.target_id, o.available_at
from outbox o
where o.kind = $1 and o.target_id > $2
and o.available_at >= least($3::timestamptz, now() - interval '10 s')
order by o.target_id, o.available_at
limit 1
)
union all
select n.target_id, n.available_at
from targets t
cross join lateral (
select o.target_id, o.available_at
from outbox o
where o.kind = $4 and o.target_id > t.target_id
and o.available_at >= least($5::timestamptz, now() - interval '10 s')
order by o.target_id, o.available_at
limit 1
) n
)
select
target_id as "targetId", available_at::text as "dueAt",
(least(available_at, now()) - interval '10 s')::text as floor,
(extract(epoch from available_at - now()) * 1000)::float8 as "dueInMs"
from targets
limit $6
;
with slice as materialized (
select l.project_id, l.last_seq
from event_logs l
where l.project_id > $1
order by l.project_id
limit $2
)
(
select l.project_id, true as is_found
from slice l
left join search_cursors c on c.project_id = l.project_id
where (
l.last_seq - coalesce(c.seq, 0) >= $3
or (l.last_seq + 1) >> 12 > (coalesce(c.seq, 0) + 1) >> 12
)
limit $4
)
union all
(select l.project_id, false from slice l limit 1 offset $5)
;
with slice as materialized (
select l.project_id, l.last_seq
from event_logs l
where l.project_id > $1
order by l.project_id
limit $2
)
(
select s.project_id, true as has_new_events
from slice s
left join delivery_cursors c on c.project_id = s.project_id and c.kind = $3
where s.last_seq > coalesce(c.seq, 0)
limit $4
)
union all
(select s.project_id, false from slice s limit 1 offset $5)
;
with standbys as materialized (
select
application_name as name,
max(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn))::float8 as bytes,
coalesce(max(extract(epoch from replay_lag)), 0)::float8 as seconds
from pg_stat_replication
where replay_lsn is not null
group by application_name
order by application_name
limit $1
), kinds as materialized (
select
k.kind, coalesce(d.n, 0) as dead_letters,
coalesce((
select extract(epoch from now() - min(first.requested_at))
from (
select o.requested_at from outbox o where o.kind = k.kind order by o.id limit $2
) as first
), 0)::float8 as seconds
from delivery_kinds k
left join (
select counted.kind, count(*) as n
from (select kind from dead_letters limit $3) as counted
group by counted.kind
) d on d.kind = k.kind
)
select
pg_database_size(current_database())::float8 as "databaseBytes",
(select numbackends from pg_stat_database where datname = current_database()) as connections,
current_setting('max_connections')::int as "maxConnections",
(select sum(size)::float8 from pg_ls_waldir()) as "walBytes",
(select json_object_agg(kind, dead_letters) from kinds) as "deadLetters",
(select json_object_agg(kind, seconds) from kinds) as "oldestSeconds",
(select json_object_agg(name, bytes) from standbys) as "standbyBytes",
(select json_object_agg(name, seconds) from standbys) as "standbySeconds"
;
with taken as (
delete from dead_letters
where project_id = $1 and id = $2
returning event_id, kind, target_id
)
select
t.event_id, t.kind, t.target_id,
exists (
select
from events e
where e.project_id = $3 and e.id = t.event_id and e.deleted_at is null
) or exists (select from audit_log a where a.id = t.event_id) as has_event
from taken t
;
with token as (
select t.id, t.name, t.role, t.account_id, t.organization_id, t.project_ids, t.is_multi_factor
from management_tokens t
where t.hash = decode($1, 'hex') and
t.expires_at > now() and (
t.organization_id is null or exists (
select from organizations o where o.id = t.organization_id and o.deleted_at is null
)
)
), noted as (
update management_tokens t set last_used_at = now()
from token
where t.id = token.id
and (t.last_used_at is null or t.last_used_at < now() - interval '1 minute')
), counted as (
insert into rate_windows as w (key_id, used, started_at)
select id, 1, now() from token where $2
on conflict (key_id) do update set
used = case when is_window_open(w.started_at) then w.used + 1 else 1 end,
started_at = case when is_window_open(w.started_at) then w.started_at else now() end
returning used, started_at
)
select
t.id, t.name, case when t.organization_id is null then 'personal' else 'organization' end as kind,
t.role as token_role, t.project_ids is not null as is_limited,
coalesce(lacks_second_factor(o.requires_second_factor, t.is_multi_factor), false)
as needs_second_factor,
p.id as account_id, p.name as account, p.email, p.is_operator,
o.id as organization_id, r.id as project_id, m.role, c.used,
ceil(extract(epoch from c.started_at + interval '60 s'))::float8 as reset_at,
extract(epoch from c.started_at + interval '60 s' - now())::float8 as retry_after
from token t
join accounts p on p.id = t.account_id
left join projects r on r.id = $3 and r.deleted_at is null
and (t.project_ids is null or r.id = any(t.project_ids))
left join organizations o on o.id = coalesce($4, r.organization_id)
and o.deleted_at is null and o.id = coalesce(t.organization_id, o.id)
left join memberships m on m.organization_id = o.id and m.account_id = t.account_id
left join counted c on true
;
with used as (
select u.id, u.events, u.bytes
from unnest(
$1::uuid[],
$2::bigint[],
$3::bigint[]
) as u (id, events, bytes)
join organizations o using (id)
order by u.id
)
insert into organization_usage as s (organization_id, minute, events, day, bytes)
select id, date_trunc('minute', now()), events, date_trunc('day', now(), 'UTC'), bytes from used
on conflict (organization_id) do update set
events = excluded.events + case when s.minute = excluded.minute then s.events else 0 end,
minute = excluded.minute,
bytes = excluded.bytes + case when s.day = excluded.day then s.bytes else 0 end,
day = excluded.day
returning
organization_id as id, events::float8, bytes::float8,
(extract(epoch from minute + interval '1 minute' - now()) * 1000)::float8 as minute_left_ms,
(extract(epoch from day + interval '1 day' - now()) * 1000)::float8 as day_left_ms
;
with used as (
select u.id, u.n
from unnest(
$1::uuid[], $2::bigint[]
) as u (id, n)
), known as (
select k.id
from api_keys k
where k.id in (select id from used)
order by k.id
for no key update
), touched as (
update api_keys k set last_used_at = now() from known where k.id = known.id
)
insert into key_usage as u (key_id, hour, requests)
select id, date_trunc('hour', now()), used.n
from used
join known using (id)
order by id
on conflict (key_id, hour) do update set requests = u.requests + excluded.requests
;
with used as (
update sessions s set last_seen_at = now()
where s.hash = decode($1, 'hex') and s.last_seen_at < now() - interval '1 minute'
and not is_session_expired(
s.is_installed and exists (
select from push_subscriptions b where b.session_id = s.id and b.is_proven
),
s.created_at, s.last_seen_at
)
)
select
s.id as session_id, s.is_installed,
extract(
epoch from s.created_at + case when s.is_installed then interval '1 year' else interval '30 days' end - now()
)::float8 as left_s,
p.id as account_id, p.name, p.email, p.is_operator,
s.verified_at > now() - interval '10 minutes' as is_verified, s.is_multi_factor,
coalesce(lacks_second_factor(o.requires_second_factor, s.is_multi_factor), false)
as needs_second_factor,
o.id as organization_id, r.id as project_id, m.role
from sessions s
join accounts p on p.id = s.account_id
left join projects r on r.id = $2 and r.deleted_at is null
left join organizations o on o.id = coalesce($3, r.organization_id)
and o.deleted_at is null
left join memberships m on m.organization_id = o.id and m.account_id = p.id
where s.hash = decode($4, 'hex') and not is_session_expired(
s.is_installed and exists (
select from push_subscriptions b where b.session_id = s.id and b.is_proven
),
s.created_at, s.last_seen_at
)
;
with wanted as materialized (
select e.id
from events e
where e.project_id = $1
and e.id = any($2::uuid[])
and e.deleted_at is null
union all
select a.id
from projects p
join audit_log a on a.organization_id = p.organization_id
where p.id = $3 and a.id = any($4::uuid[])
), revived as (
delete from dead_letters d
using wanted w
where d.project_id = $5 and d.event_id = w.id and d.kind = $6
and d.target_id = $7
), queued as (
insert into outbox as o (project_id, event_id, kind, target_id)
select $8::uuid, w.id, $9, $10::uuid
from wanted w
order by w.id
on conflict (project_id, event_id, kind, target_id) do update set
available_at = now(), requested_at = now(), attempts = 0, reason = null
where o.token is null
)
select id from wanted
;
