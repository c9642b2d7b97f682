-- One row is an organization: a group of accounts that share projects.
create table organizations (
  id uuid primary key,
  name text not null,
  created_at timestamptz not null default now(),
  -- A deleted organization is invisible at once. Its rows are removed in batches.
  deleted_at timestamptz
);

-- Serves the removal of deleted organizations.
create index organizations_deleted on organizations (deleted_at) where deleted_at is not null;

-- One row is a project of an organization. It has one log of events.
create table projects (
  id uuid primary key,
  organization_id uuid not null references organizations,
  name text not null,
  created_at timestamptz not null default now(),
  -- A deleted project is invisible at once. Its rows are removed in batches.
  deleted_at timestamptz,
  -- How many days events are kept; null keeps them forever. A channel can override it.
  keep_days int check (keep_days > 0),
  -- Lets other tables reference a project and its organization with one key.
  unique (organization_id, id)
);

-- Serves the removal of deleted projects.
create index projects_deleted on projects (deleted_at) where deleted_at is not null;

-- One row is an account: a person who signs in. email is in lower case. password_hash is null until
-- a password is set.
create table accounts (
  id uuid primary key,
  name text not null,
  email text not null unique check (email = lower(email)),
  password_hash text,
  -- True for a password that was set from the machine: by a reset link of the command line, or by a
  -- setting. Only these sign in while passwords are off.
  is_password_from_machine boolean not null default false,
  -- True once a trusted provider, the proxy or the machine has given the e-mail address. Otherwise
  -- somebody entered it, perhaps that of another person.
  is_email_proven boolean not null default false,
  -- Operators see the state of the server and create organizations. The first account is one.
  is_operator boolean not null default false,
  created_at timestamptz not null default now()
);

-- One row is the role of an account in an organization.
create table memberships (
  organization_id uuid not null references organizations on delete cascade,
  account_id uuid not null references accounts on delete cascade,
  role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
  -- The provider whose sign-in rules gave the membership; null for any other way to join. A sign-in
  -- there changes or ends it with the rules.
  provider text,
  created_at timestamptz not null default now(),
  primary key (organization_id, account_id)
);

-- Serves the list of an account's organizations.
create index memberships_of_account on memberships (account_id);

-- One row is a session: a browser in which an account is signed in. hash is the SHA-256 of its
-- token.
create table sessions (
  id uuid primary key,
  hash bytea not null unique check (octet_length(hash) = 32),
  account_id uuid not null references accounts on delete cascade,
  -- The word of the browser. The session is long only with a proven push subscription, too.
  is_installed boolean not null,
  -- How the account signed in. A link is a setup link or an invite.
  method text not null check (method in ('password', 'passkey', 'openid', 'proxy', 'link')),
  -- True if the account signed in, or was verified later, with more than a password.
  is_multi_factor boolean not null default false,
  created_at timestamptz not null default now(),
  last_seen_at timestamptz not null default now(),
  -- When the account last confirmed that it is present, with a password or a passkey. Actions that
  -- reveal secrets or destroy something require the last 10 minutes.
  verified_at timestamptz not null default now(),
  address text not null,
  user_agent text not null
);

-- Serves the list of an account's sessions.
create index sessions_of_account on sessions (account_id, id);

-- Returns whether a session has expired: after 7 days without use, or after 30 days. A long session
-- expires after a year. An argument with a subquery is used once, so that Postgres can inline the
-- function.
create function is_session_expired(is_long boolean, created_at timestamptz, last_seen_at timestamptz)
returns boolean
language sql stable as $$
  select now() > case
    when is_long then created_at + interval '1 year'
    else least(last_seen_at + interval '7 days', created_at + interval '30 days')
  end
$$;

-- One row is a known browser of an account, from which it has signed in. Failed attempts elsewhere
-- do not delay it.
create table known_devices (
  hash bytea not null check (octet_length(hash) = 32),
  account_id uuid not null references accounts on delete cascade,
  last_used_at timestamptz not null default now(),
  -- Identifies the browser for its failed attempts. The hash changes with every sign-in from this
  -- browser.
  id uuid not null default gen_random_uuid(),
  -- One browser can be known for several accounts.
  primary key (hash, account_id)
);

-- Serves the deletion of an account's devices, and the limit on their number.
create index known_devices_of_account on known_devices (account_id, last_used_at);

-- One row is a count of recent failed attempts with a password or code, or the used part of a
-- budget, which falls over time. account is a SHA-256 of an e-mail address. lane is one of a
-- network, a known browser, a session or a budget. Unlogged: a crash of Postgres resets the counts.
create unlogged table sign_in_failures (
  account bytea not null check (octet_length(account) = 32),
  lane bytea not null check (octet_length(lane) = 32),
  failures float8 not null,
  -- Attempts that were refused without a check.
  refused int not null default 0,
  -- The time of the last failure. For a budget, the time of the last attempt.
  last_at timestamptz not null,
  primary key (account, lane)
) with (fillfactor = 50);

-- Returns the delay before the next attempt: none up to four failures, then one second, doubling up
-- to 15 minutes.
create function sign_in_delay(failures int) returns interval
language sql immutable as $$
  select case
    when failures < 5 then interval '0'
    else least(interval '15 minutes', interval '1 second' * power(2, least(failures, 20) - 5))
  end
$$;

-- Counts an attempt as a failure, before its password or code is checked. Returns 0, or the seconds
-- to wait if the attempt is refused. Failures of a lane are forgotten a day after the last one. The
-- budget of all networks, if any, holds `capacity` failures, and loses one in `refill_s` seconds. A
-- lane leaves a part of it to lanes with fewer failures: a twentieth for each failure and for each
-- five refused attempts, half of it at most.
--
-- The budget is locked before the lane, so that transactions cannot deadlock.
create function count_attempt(
  p_account bytea, p_lane bytea, p_budget bytea, capacity int, refill_s float8
) returns float8
language plpgsql as $$
declare
  t constant timestamptz := clock_timestamp();
  l sign_in_failures;
  used float8;
  reserve float8;
  wait_s float8;
begin
  if p_budget is not null then
    insert into sign_in_failures as f (account, lane, failures, last_at)
    values (p_account, p_budget, 0, t)
    on conflict (account, lane) do update set
      failures = greatest(0, f.failures - greatest(0, extract(epoch from t - f.last_at)) / refill_s), last_at = t
    returning failures into used;
  end if;
  insert into sign_in_failures as f (account, lane, failures, last_at)
  values (p_account, p_lane, 0, t)
  on conflict (account, lane) do update set
    failures = case when f.last_at < t - interval '1 day' then 0 else f.failures end,
    refused = case when f.last_at < t - interval '1 day' then 0 else f.refused end
  returning * into l;
  wait_s := extract(epoch from l.last_at + sign_in_delay(l.failures::int) - t);
  if p_budget is not null then
    reserve := capacity / 2.0 * least(l.failures + l.refused / 5, 10) / 10;
    wait_s := greatest(wait_s, (used + 1 + reserve - capacity) * refill_s);
  end if;
  if wait_s > 0 then
    update sign_in_failures set refused = least(refused + 1, 1000) where account = p_account and lane = p_lane;
    return wait_s;
  end if;
  update sign_in_failures set failures = least(failures + 1, 1000), last_at = t
  where account = p_account and lane in (p_lane, p_budget);
  return 0;
end
$$;

-- Takes an attempt out of the counts again.
create function uncount_attempt(p_account bytea, p_lane bytea, p_budget bytea) returns void
language plpgsql as $$
begin
  update sign_in_failures set failures = greatest(failures - 1, 0) where account = p_account and lane = p_budget;
  update sign_in_failures set failures = greatest(failures - 1, 0) where account = p_account and lane = p_lane;
end
$$;

-- One row is a setup link, which creates the first owner of an installation.
create table setup_links (
  hash bytea primary key check (octet_length(hash) = 32),
  expires_at timestamptz not null
);

-- One row is a reset link, which sets an account's password once.
create table reset_links (
  id uuid primary key,
  hash bytea not null unique check (octet_length(hash) = 32),
  account_id uuid not null references accounts on delete cascade,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  -- The owner who created it, and the organization in which they may. Both are null for the command
  -- line.
  created_by uuid references accounts on delete cascade,
  organization_id uuid references organizations on delete cascade,
  check ((created_by is null) = (organization_id is null))
);

-- Serves the withdrawal of an account's reset links.
create index reset_links_of_account on reset_links (account_id);

-- One row is an open invite, with which one account joins an organization. If it has an email, only
-- the account with that email can accept it.
create table invites (
  id uuid primary key,
  organization_id uuid not null references organizations on delete cascade,
  hash bytea not null unique check (octet_length(hash) = 32),
  role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
  email text,
  invited_by uuid not null references accounts on delete cascade,
  -- The management token that made it, without which it admits nobody. Null for a session.
  token_id uuid,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null
);

-- Serves the list of an organization's open invites.
create index invites_of_organization on invites (organization_id, id);

-- Serves the sweep of expired invites.
create index invites_expired on invites (expires_at);

-- Serves the withdrawal of invites whose creator may no longer invite.
create index invites_of_inviter on invites (invited_by);
