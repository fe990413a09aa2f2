"""Forks: runs that go on from a checkpoint of another, and where they come from."""
