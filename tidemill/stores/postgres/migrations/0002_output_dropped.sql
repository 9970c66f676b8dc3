-- How many bytes of an attempt's output were written before those that are kept.
ALTER TABLE attempt_log ADD COLUMN dropped BIGINT NOT NULL DEFAULT 0;
