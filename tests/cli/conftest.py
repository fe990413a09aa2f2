"""The command line, called in this process as a rule: another one loads torch for seconds."""

from tests.run_folders import root  # noqa: F401  (the same fixture as for runs)
