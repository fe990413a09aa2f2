"""Runs as a page is fed with them: columns that grow, and the messages that carry them. No torch, no Jupyter.

The kernel's reader thread (``ui``) and the server's handlers (``server``) both stand on this, so that a page has one
reader for both.
"""
