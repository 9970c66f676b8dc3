"""Measures Tidemill: `make bench`, or `bench/run.py --only chain fan --json FILE`."""
