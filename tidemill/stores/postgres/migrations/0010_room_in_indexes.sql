-- tidemill: outside transaction
-- Ids rise with time: their indexes grow at the right end, in pages that are left nearly full. Each
-- later version of a row that changes a condition of some index needs an entry on those pages too,
-- which had to be cleaned up or split for it. Now there is room for two versions of a run, and for
-- three of a task.
ALTER INDEX task_pkey SET (fillfactor = 35);
ALTER INDEX run_pkey SET (fillfactor = 45);
ALTER INDEX run_listing SET (fillfactor = 45);
ALTER INDEX run_by_kind SET (fillfactor = 45);

-- Dead letters have an index of their own since they can be discarded.
DROP INDEX CONCURRENTLY IF EXISTS task_dead;
