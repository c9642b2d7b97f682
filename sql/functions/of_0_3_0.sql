-- Functions that servers of 0.3.0 call while they run beside those of this version. The next
-- version drops them. It also drops what only 0.3.0 uses: the tables resumed_targets,
-- openid_providers and sign_in_steps, the columns webhooks.paused_until, outbox.is_resumed,
-- outbox.failed_at and projects.users_indexed_to, the kind 'table' of insight_cards, and
-- other_digits and other_currencies in unicode.sql.

-- Returns what read_webhooks does. Probes and pauses are those of claim_deliveries.
create or replace function read_webhook_deliveries(
  project_ids uuid[], webhook_ids uuid[], event_ids uuid[], may_probe boolean, failures_to_pause int, probe_s float8
) returns table (project_id uuid, id uuid, event_text text, webhook json)
language sql
set search_path from current
as $$
  select
    r.project_id, r.id, r.event_text,
    (r.webhook::jsonb || '{"type": "event.created", "pausedUntilMs": null, "hasProbe": false}')::json
  from read_webhooks(project_ids, webhook_ids, event_ids) r
$$;

-- Resumes the targets that a server of 0.3.0 asks for. Returns them, for its memory.
create or replace function resume_deliveries(max_rows int) returns table (kind text, target_id uuid, is_done boolean)
language sql
set search_path from current
as $$
  with taken as (
    delete from resumed_targets r
    where (r.kind, r.target_id) in (
      select t.kind, t.target_id
      from resumed_targets t
      order by t.kind, t.target_id
      limit 1
      for update skip locked
    )
    returning r.kind, r.target_id
  )
  insert into delivery_targets as d (kind, id, resumed_at)
  select t.kind, t.target_id, now() from taken t
  on conflict on constraint delivery_targets_pkey do update set
    paused_until = '-infinity', single_until = '-infinity', probe_id = null, resumed_at = excluded.resumed_at
  returning d.kind, d.id, true
$$;

-- Returns a title with # in place of each number. A number is also a date, a time, an amount with
-- its currency, and an id: letters and digits that alternate, six or more hexadecimal digits, or 16
-- letters and digits. Letters that touch other numbers stay: OAuth2 is OAuth#. The result has no
-- digits, so it is its own shape.
create or replace function shape_of_title(title text) returns text
language plpgsql immutable parallel safe as $$
declare
  shape text collate "C";
  -- The ends of an id.
  id_start constant text := '(?<![0A-Za-z])';
  id_end constant text := '(?![0A-Za-z])';
  months constant text :=
    '(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)(?:uary|ruary|ch|il|e|y|ust|t|tember|ober|ember)?';
  codes constant text := '(?:USD|EUR|GBP|JPY|CNY|CHF|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|UAH|INR|BRL|MXN|ZAR|KRW|SGD|HKD)';
  signs text := '[$]';
  spaces text := ' ';
begin
  -- From here on, 0 stands for any digit.
  if octet_length(title) = length(title) then
    shape := translate(title, '123456789', '000000000');
  else
    shape := regexp_replace(title collate "C", '[1-9' || other_digits() || ']', '0', 'g');
    signs := '[$' || other_currencies() || ']';
    spaces := E'[ \u00a0\u2009\u202f]';
  end if;
  if strpos(shape, '0') = 0 then
    return title;
  end if;
  if shape ~ '[A-Za-z]0|0[A-Za-z]' then
    shape := regexp_replace(shape, id_start || '(?:'
      -- A UUID.
      || '(?=[A-Fa-f-]{0,35}0)[0A-Fa-f]{8}(?:-[0A-Fa-f]{4}){3}-[0A-Fa-f]{12}'
      -- An address of IPv6, or of a network card.
      || '|(?=[A-Fa-f:]{0,38}0)[0A-Fa-f]{0,4}(?::[0A-Fa-f]{0,4}){1,6}:[0A-Fa-f]{1,4}'
      || '|0x[0A-Fa-f]+'
      || '|(?=[A-Fa-f]*0)[0A-Fa-f]{6,}'
      || '|[A-Za-z]*0+[A-Za-z]+0[0A-Za-z]*'
      || '|(?=[A-Za-z]*0)[0A-Za-z]{16,}'
      || ')' || id_end, '0', 'g');
  end if;
  if shape ~ 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec' then
    shape := regexp_replace(shape, id_start || '(?:'
      || '0+(?:st|nd|rd|th)?[.]?[ /-]' || months || '(?:[.,]?[ /-]0+)?'
      || '|' || months || '[.]?[ /-]0+(?:st|nd|rd|th)?(?:,? 0+)?'
      || ')' || id_end, '0', 'g');
  end if;
  return regexp_replace(shape,
    -- A sign, a currency, and the # of #1.
    '(?:(?<![^ (])[-+\u2212])?(?:(?:' || signs || '|' || id_start || codes || ')' || spaces || '?[-+\u2212]?)?#?'
    -- Digits, with all that separates their groups and the parts of dates and times.
    || '0+(?:[-+.,:/''_\u2013\u2019\u2212]?' || spaces || '?0+)*'
    || '(?:(?:st|nd|rd|th|Z|' || spaces || '?[AaPp][Mm])' || id_end || ')?'
    || '(?:' || spaces || '?(?:' || signs || '|' || codes || id_end || '))?',
    '#', 'g');
end
$$;

-- Removes up to `max_rows` expired events of a channel.
create or replace function expire_events(project uuid, channel uuid, after_seq bigint, max_rows int)
returns table (deleted int, last_seq bigint)
language sql volatile
set search_path from current
as $$
  select * from expire_channel(
    project => project, channel => channel, after_seq => after_seq, max_rows => max_rows, needs_export => false
  )
$$;

-- Returns that a user is not in the archive, which later servers do not have.
create or replace function begin_archive_erasure(
  project uuid, name text, author json, last_erased_at timestamptz
) returns boolean
language sql immutable
return false;
