"""What a run has recorded, in the files of other tools: one file here for each. They read the run folder alone."""
