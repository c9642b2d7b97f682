-- Takes room for the channels of events that do not exist yet, from the quotas of organizations.
-- Returns the positions of the events whose channel has none; a slug is null for an event that
-- needs no channel. The caller has locked the logs of the projects, and then creates the channels.
-- Organizations are locked in their order, so that transactions cannot deadlock.
--
-- Counters only rise. At the limit, the channels are counted anew, at most once a second.
create or replace function take_channels(project_ids uuid[], slugs text[]) returns bigint[]
language plpgsql
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
  max_channels int := (select i.max_channels from installation i);
  wanted record;
  organization uuid;
  -- The channels of the organization that this call has taken.
  taken int;
  full_positions bigint[] := '{}';
begin
  for wanted in
    select p.organization_id, i.project_id, i.slug, array_agg(i.ord) as positions
    from unnest(project_ids, slugs) with ordinality as i (project_id, slug, ord)
      cross join lateral (select p.organization_id from projects p where p.id = i.project_id limit 1) p
    where i.slug is not null and max_channels is not null
    group by 1, 2, 3
    order by 1, min(i.ord)
  loop
    if organization is distinct from wanted.organization_id then
      organization := wanted.organization_id;
      taken := 0;
    end if;
    perform from channels c
      where c.project_id = wanted.project_id and c.slug >= wanted.slug and c.slug <= wanted.slug
      order by c.slug
      limit 1;
    continue when found;
    for attempt in 1 .. 2 loop
      update organization_channels c set channels = c.channels + 1
        where c.organization_id = organization and c.channels < max_channels;
      exit when found;
      if attempt = 2 then
        taken := taken - 1;
        full_positions := full_positions || wanted.positions;
      else
        insert into organization_channels (organization_id, channels, counted_at)
          values (organization, max_channels, '-infinity')
          on conflict do nothing;
        -- The count comes after the lock, so it has what others have committed.
        perform from organization_channels c where c.organization_id = organization for no key update;
        update organization_channels c
          set counted_at = clock_timestamp(), channels = taken + (
            select count(*)
            from (
              select from projects p cross join lateral channels_of(p.id) h
              where p.organization_id = organization and p.deleted_at is null
              limit max_channels
            ) h
          )
          where c.organization_id = organization
            and (c.counted_at < clock_timestamp() - interval '1 s' or c.counted_at > clock_timestamp());
      end if;
    end loop;
    taken := taken + 1;
  end loop;
  return full_positions;
end
$$;
