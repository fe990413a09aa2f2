"""Lessons: predictions that learners commit to before an experiment, what came of them, questions with hints."""
