"""Runs in the files of other tools: one file here for each tool. All of them read the run folder alone."""
