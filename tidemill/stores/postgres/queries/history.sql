-- name: add_attempt
INSERT INTO attempt (
    run_id, position, epoch, attempt, reason, session_id, started_at, ended_at, error, namespace
)
SELECT v.*, (SELECT r.namespace FROM run AS r WHERE r.id = v.run_id)
FROM unnest(
    $1::UUID[], $2::INTEGER[], $3::INTEGER[], $4::INTEGER[], $5::TEXT[], $6::TEXT[], $7::BIGINT[],
    $8::BIGINT[], $9::TEXT[]
) AS v (run_id, position, epoch, attempt, reason, session_id, started_at, ended_at, error);

-- name: add_result
INSERT INTO task_result (run_id, position, data, namespace)
SELECT v.*, (SELECT r.namespace FROM run AS r WHERE r.id = v.run_id)
FROM unnest($1::UUID[], $2::INTEGER[], $3::BYTEA[]) AS v (run_id, position, data);

-- name: add_log
-- Index: primary key. Keeps the last bytes, at most as many as the sixth column says (it is the
-- same in every row), and counts those before them: what is kept has no gap. Output of a run
-- that does not exist is dropped.
INSERT INTO attempt_log (run_id, position, epoch, data, dropped, namespace)
SELECT v.*, r.namespace
FROM unnest($1::UUID[], $2::INTEGER[], $3::INTEGER[], $4::BYTEA[], $5::BIGINT[])
    AS v (run_id, position, epoch, data, dropped)
CROSS JOIN LATERAL (SELECT r.namespace FROM run AS r WHERE r.id = v.run_id OFFSET 0) AS r
ON CONFLICT (run_id, position, epoch) DO UPDATE
SET
    data = CASE
        WHEN excluded.dropped > 0 THEN excluded.data
        ELSE substr(
            attempt_log.data || excluded.data,
            greatest(1, length(attempt_log.data) + length(excluded.data) - ($6::INTEGER[])[1] + 1)
        )
    END,
    dropped = attempt_log.dropped + CASE
        WHEN excluded.dropped > 0 THEN excluded.dropped + length(attempt_log.data)
        ELSE greatest(0, length(attempt_log.data) + length(excluded.data) - ($6::INTEGER[])[1])
    END;
