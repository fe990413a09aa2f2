"""Races, sweeps and tunings: a folder each, a driver that may be killed, runs launched once, equal budgets."""
