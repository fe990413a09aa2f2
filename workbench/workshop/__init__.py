"""A room of learners on one machine: is it fit, is it warm, what is everybody doing, who is ahead in a set task."""
