-- tidemill: outside transaction
-- A run may be PAUSED. The rule for states only grows, so old rows need no look at before it counts.
ALTER TABLE run
    DROP CONSTRAINT IF EXISTS run_state_check,
    DROP CONSTRAINT IF EXISTS run_state_known,
    ADD CONSTRAINT run_state_known
        CHECK (state IN ('PENDING', 'RUNNING', 'PAUSED', 'SUCCEEDED', 'FAILED', 'CANCELLED'))
        NOT VALID,
    ADD COLUMN IF NOT EXISTS swept INTEGER;
ALTER TABLE run VALIDATE CONSTRAINT run_state_known;
-- An ended run begins again only as a new generation, which may end in the same write.
CREATE OR REPLACE TRIGGER run_moves BEFORE UPDATE OF state, generation ON run
FOR EACH ROW WHEN (
    NEW.generation < OLD.generation
    OR (OLD.ended_at IS NOT NULL AND NEW.state <> OLD.state AND NEW.generation = OLD.generation))
EXECUTE FUNCTION refuse_move('illegal transition of a run');
-- Runs that were paused or resumed, with READY tasks left to hold or to admit.
DROP INDEX CONCURRENTLY IF EXISTS run_unswept;
CREATE INDEX CONCURRENTLY run_unswept ON run (id) WHERE swept IS NOT NULL;
