-- Oldest server: 0.3.0

-- One row is the question that an event asks members, and its answer.
create table questions (
  project_id uuid not null,
  -- The id of its event.
  id uuid not null,
  -- The answers to choose from: [{"id": "deploy", "label": "Deploy"}].
  actions jsonb not null check (jsonb_array_length(actions) between 1 and 4),
  expires_at timestamptz not null,
  -- The lowest role that may answer.
  lowest_role text not null check (lowest_role in ('member', 'admin', 'owner')),
  -- Sealed; null once its callback was accepted or given up.
  callback_url text,
  -- The target of the callback's timer: callbacks of one host share one.
  callback_target uuid,
  -- The id of the chosen action; null if it waits, or nobody answered in time.
  action text,
  account_id uuid,
  -- The name of the token, if a token without an account answered.
  token_name text,
  -- When it was answered, or when nobody had.
  ended_at timestamptz,
  -- When the program fetched the answer, or accepted the callback.
  received_at timestamptz,
  primary key (project_id, id)
);

-- Serves the limit of questions that wait.
create index questions_waiting on questions (project_id) where ended_at is null;
