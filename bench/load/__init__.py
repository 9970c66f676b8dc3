"""Load tests against a server that somebody runs: they know it by its HTTP API alone."""
