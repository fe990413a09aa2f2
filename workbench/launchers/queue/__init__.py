"""The queue of one machine: runs take turns on its cores and GPUs instead of slowing each other down.

There is no server. Each run that waits has a supervisor of its own, which holds a *ticket*: a small file in the queue's
folder under a flock. Whoever holds it looks whether its turn has come and takes it itself. So a ticket of a process
that was killed is dead at once, and its place free; the queue is whatever the living hold, and tickets that somebody
deleted come back by themselves. Of many that wait, one looks at all tickets when something changes and leaves what it
found for the others (:mod:`.front`), so that thousands cost little more than a few. What waits without a process, after
a reboot, is started again by the next launch, the next end of a run, or `workbench queue start`.

Tickets rather than a table of a database: a flock says who is alive, which a row cannot; one damaged file is one
ticket; and another user needs no right to write to it. The folder is never on a network file system.
"""
