"""Pairs of real operations on PostgreSQL, statement by statement, in every order that matters."""
