-- tidemill: outside transaction
-- Deadlines are looked for every second. With the condition of `run_open` among its own, the planner
-- might look there instead, and walk over all that has ended since somebody took a snapshot.
DROP INDEX CONCURRENTLY IF EXISTS run_deadline;
CREATE INDEX CONCURRENTLY run_deadline ON run (due_at)
    WHERE due_at IS NOT NULL AND stop IS NULL AND coalesce(ended_at, 0) = 0;

DROP INDEX CONCURRENTLY IF EXISTS run_due;
