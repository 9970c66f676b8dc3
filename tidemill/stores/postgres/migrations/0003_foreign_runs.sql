-- tidemill: outside transaction
-- Runs of a later release are shown in health; there are none, so the index is empty.
DROP INDEX CONCURRENTLY IF EXISTS run_foreign;
CREATE INDEX CONCURRENTLY run_foreign ON run (id) WHERE format > 1;
