-- The number of the rules by which a part has words: search_rules(). Parts of 0.2.0 have 1.
alter table search_parts add column rules smallint not null default 1;

-- The indexer indexes parts of former rules anew, as it does after deletions.
insert into stale_segments (project_id, segment, first_at, last_at)
  select distinct s.project_id, s.first_seq >> 12, now() - interval '1 day', now() - interval '1 day'
  from search_parts s
    join projects p on p.id = s.project_id and p.deleted_at is null
  on conflict (project_id, segment) do update set last_at = excluded.last_at;
