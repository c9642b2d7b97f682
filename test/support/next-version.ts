// The server of the next version, which adds a migration.
import { MIGRATIONS, type Migration } from '../../src/db/migrate.ts'

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
await import('../../src/main.ts')
