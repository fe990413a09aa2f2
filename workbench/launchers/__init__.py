"""Launchers bring the supervisor of a run to life: here (:mod:`.local`), or wherever another file of this folder says.

A launcher gets a run folder and gives back a handle; :mod:`.supervisor` does the rest where it runs.
"""
