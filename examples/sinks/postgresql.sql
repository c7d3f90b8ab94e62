-- Tables that Kafka Connect fills by postgresql.json, a row a key, and views that show them in columns.
-- A key that was deleted has no record any more.
create table if not exists weights (key text primary key, record jsonb);
create table if not exists "mixed-forecasts" (key text primary key, record jsonb);

-- A row a feed and expert. Records of large feeds come in parts; those of an earlier revision do not count.
create or replace view expert_weights as
select
    record ->> 'feed' as feed,
    (record ->> 'revision')::bigint as revision,
    (record ->> 'at')::timestamptz as at,
    record ->> 'status' as status,
    listed.id as expert,
    listed.mix,
    listed."select",
    listed.questions,
    listed.coverage,
    listed.peer_loss,
    listed.outcome_loss
from weights, jsonb_to_recordset(record -> 'experts') as listed (
    id text, mix float8, "select" float8, questions float8, coverage float8, peer_loss float8, outcome_loss float8
)
where not exists (
    select from weights as other
    where other.record ->> 'feed' = weights.record ->> 'feed'
        and (other.record ->> 'revision')::bigint > (weights.record ->> 'revision')::bigint
);

-- A row a question.
create or replace view mixed_forecasts as
select
    record ->> 'question' as question,
    record ->> 'feed' as feed,
    (record ->> 'revision')::bigint as revision,
    (record ->> 'at')::timestamptz as at,
    record ->> 'trust' as trust,
    record ->> 'state' as state,
    (record ->> 'boundary')::timestamptz as boundary,
    (record ->> 'final')::boolean as final,
    (record ->> 'mix')::float8 as mix,
    (record ->> 'stretched')::float8 as stretched,
    (record ->> 'mean')::float8 as mean,
    record ->> 'outcome' as outcome
from "mixed-forecasts"
where record is not null;
