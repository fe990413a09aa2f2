"""Runs from any process: launch, list, steer, fork, compare."""
