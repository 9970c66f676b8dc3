"""Shapes that other systems' clients rely on: thin adapters over the same use cases.

Whatever is made through one of them is a run, known to /v1 by the same id.
"""
