// The server of the next version, which adds a migration and a function.
import { FUNCTIONS, MIGRATIONS, type Migration } from '../../src/database/sql-files.ts'

const text = `
create table later (id int primary key);
alter table events add column later text;
alter table event_logs add column later int not null default 0;
alter table api_keys add column later text;
alter table rate_windows add column later text;
alter table channels add column later text;
alter table outbox add column later text;
alter table sessions add column later text;
alter table accounts add column later boolean not null default false;
`
const migrations = MIGRATIONS as Migration[]
migrations.push({ name: '9000_later', text })
const later = 'create or replace function later() returns int language sql return 1;'
Object.assign(FUNCTIONS, {
  version: '900.0.0',
  files: [...FUNCTIONS.files, { name: 'later', text: later }],
})
await import('../../src/main.ts')
