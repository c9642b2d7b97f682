-- Returns whether members are not told now of an event of a thread, or of an event without one.
create or replace function is_silenced(project uuid, channel uuid, thread_key text, event_thread_seq bigint)
returns boolean
language sql stable as $$
  select exists (
    select
    from silences s
    where s.project_id = project and s.starts_at <= now() and (s.ends_at is null or s.ends_at > now())
      and (s.channel_id is null or s.channel_id = channel)
      and (s.thread is null or s.thread = thread_key)
      and (s.thread_seq is null or s.thread_seq = event_thread_seq)
  )
$$;
