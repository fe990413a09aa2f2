"""Damaged and hostile input: every reader of what people paste or what stands in a run folder answers with its own
error or with what it could read. ``make fuzz`` runs the large budget, the suite a small one."""
