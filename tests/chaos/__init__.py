"""Chaos: real processes and servers, killed, paused and restarted while thousands of runs go on."""
