-- Returns a stored response without its content. A retry gets it when the event was deleted, or a
-- user was erased whom the response names: nothing is done again, and nothing erased is shown. A
-- response to identify keeps `user_id`. Immutable, as next_millisecond is.
create or replace function empty_stored_response(body text, user_id text) returns text
language plpgsql immutable parallel safe as $$
declare
  response json := body::json;
  data json := response -> 'data';
begin
  return '{"success":true,"data":{"id":' || (data -> 'id')::text
    || case when data -> 'seq' is null then
      ',"userId":' || coalesce(to_json(user_id)::text, 'null')
      || ',"properties":{},"aliases":{"created":[]},"updatedAt":' || (data -> 'updatedAt')::text || '}'
    else
      ',"seq":' || event_json(
        (data ->> 'seq')::bigint, data ->> 'channelId', data ->> 'channelName', null,
        (data ->> 'timestamp')::timestamptz, (data ->> 'createdAt')::timestamptz,
        '', null, null, '{}', '{}', data ->> 'source', (data ->> 'notify')::boolean,
        (array_position('{low,normal,high,critical}', data ->> 'level') - 1)::smallint, null, null, null, null
      )
    end
    || ',"requestId":' || (response -> 'requestId')::text || '}';
end
$$;

-- Deletes up to `max_rows` expired Idempotency-Keys that no other transaction has locked, and
-- corrects as many that a clock which was ahead has made. Returns the larger number of the two.
create or replace function delete_expired_keys(max_rows int) returns int
language plpgsql
as $$
declare
  n int;
  corrected int;
begin
  update idempotency_keys k set expires_at = now() + interval '24 hours'
    where k.ctid = any(array(
      select l.ctid
      from idempotency_keys l
      where l.expires_at > now() + interval '24 hours 1 minute'
      order by l.expires_at desc
      limit max_rows
      for update skip locked
    ));
  get diagnostics corrected = row_count;
  delete from idempotency_keys
    where ctid = any(array(
      select k.ctid
      from idempotency_keys k
      where k.expires_at < now()
      order by k.expires_at
      limit max_rows
      for update skip locked
    ));
  get diagnostics n = row_count;
  return greatest(n, corrected);
end
$$;

-- Locks Idempotency-Keys until the transaction ends, without waiting. Returns the positions of keys
-- that another transaction has locked.
create or replace function lock_idempotency_keys(project_ids uuid[], keys text[]) returns bigint[]
language plpgsql
as $$
begin
  if array_remove(keys, null) = '{}' then
    return '{}';
  end if;
  return array(
    select k.ord
    from unnest(project_ids, keys) with ordinality as k (project_id, key, ord)
    where k.key is not null
      and not pg_try_advisory_xact_lock(lock_digest('Idempotency-Key', k.project_id::text || k.key))
  );
end
$$;
