"""``python -m tests.faults.run [--out FILE]`` (``make faults``): faults injected into real runs, and how they end.

Every fault has its tests, here or beside the code that survives it. Exit code 1 if anything was lost.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

from workbench.bench.result import context

ROOT = Path(__file__).parents[2]
FAULTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "kill -9 of the trainer": (
        "told, resumed from the last checkpoint; final weights equal an uninterrupted run's, at random steps",
        ("launchers/test_supervisor.py::test_a_killed_trainer_is_told_and_resumed",
         "training/test_resume.py::test_kill_at_a_random_step_and_resume",
         "telemetry/test_streams.py::test_kill_9_loses_at_most_a_second"),
    ),
    "kill -9 of the supervisor": (
        "no orphan, never two trainers; the run is resumed",
        ("launchers/test_supervisor.py::test_a_killed_supervisor_leaves_no_orphan",),
    ),
    "kill -9 while a checkpoint is saved": (
        "what is half there is cleared away, the one before counts",
        ("training/test_checkpoint.py::test_what_a_killed_save_left_behind_is_cleared_away",),
    ),
    "hang (SIGSTOP)": (
        "stalled within 30 s and said everywhere, running again after SIGCONT",
        ("training/test_failures.py::test_a_suspended_run_is_stalled_until_it_goes_on",
         "store/test_state.py::test_a_silent_run_is_stalled_by_the_clock_that_nobody_sets",
         "training/test_status.py::test_a_late_heartbeat_is_a_suspension_and_is_not_charged"),
    ),
    "loss that is not finite": (
        "back to a checkpoint at half the rate where budget.rollbacks allows it; else an end with its cause",
        ("training/test_rollback.py::test_a_run_that_diverges_goes_back_to_its_checkpoint_at_half_the_rate",
         "training/test_session.py::test_a_change_that_breaks_the_run_costs_nothing",
         "training/test_session.py::test_a_failure_that_a_resume_only_repeats_is_marked"),
    ),
    "clock jumps forth and back": (
        "the same weights and curves; no stalled run, no lease or request lost",
        ("faults/test_faults.py::test_a_clock_that_jumps_changes_nothing_that_is_trained",
         "store/test_control.py::test_a_clock_that_is_set_back_does_not_change_the_order",
         "store/test_lease.py::test_a_clock_that_was_ahead_locks_nobody_out"),
    ),
    "a pid that is used again": (
        "a run is alive by its lock alone; a handle also compares start time and boot",
        ("store/test_state.py::test_a_run_whose_lock_is_free_is_lost",
         "launchers/test_launcher.py::test_what_a_local_handle_says"),
    ),
    "reboot (another boot id)": (
        "queued runs are started again, others are lost and can be resumed",
        ("launchers/queue/test_waiting.py::test_the_next_launch_starts_what_a_reboot_left",
         "launchers/test_launcher.py::test_a_launch_that_was_killed_is_lost_after_a_while_and_can_be_resumed"),
    ),
    "folder becomes read-only": (
        "paused and said; goes on once the folder can be written to, with the same weights and curves",
        ("faults/test_faults.py::test_a_folder_that_becomes_read_only_pauses_the_run",),
    ),
    "disk full, or read-only, at every line that writes": (
        "paused, or failed with the reason before the first step; once it can be written to the same weights",
        ("training/test_failures.py::test_a_disk_that_refuses_any_write_pauses_the_run",),
    ),
    "disk really full (tmpfs)": (
        "paused and said; checkpoints whole; goes on when there is space",
        ("training/test_failures.py::test_a_really_full_disk_pauses_the_run_and_freed_space_lets_it_go_on",
         "training/test_failures.py::test_a_worker_that_ends_on_a_full_disk_says_why",
         "training/test_checkpoint.py::test_a_disk_that_fills_up_while_writing_leaves_the_old_checkpoint_whole",
         "store/test_state.py::test_on_a_full_disk_states_are_written_into_the_reserve",
         "telemetry/test_streams.py::test_a_full_disk_leaves_whole_lines_and_is_told",
         "launchers/queue/test_queue_folder.py::test_on_a_full_disk_a_run_trains_and_one_that_waits_goes_on",
         "experiments/test_driver.py::test_a_driver_outlives_a_full_disk_also_its_log",
         "client/test_launch.py::test_a_full_disk_is_said_and_nothing_half_written_stays"),
    ),
    "damaged checkpoint": (
        "the one before is used, and said",
        ("training/test_resume.py::test_damaged_newest_checkpoint_is_said_and_survived",),
    ),
    "line of telemetry that nobody can read": (
        "left out; everything else is there",
        ("faults/test_faults.py::test_a_line_that_nobody_can_read_is_left_out_and_the_run_goes_on",
         "telemetry/test_streams.py::test_a_damaged_line_does_not_hide_the_rest"),
    ),
}  # fmt: skip
"""By name: what surviving it means, and the tests that inject it, below ``tests/``."""


def main() -> int:
    """Inject every fault; print the table; returns 1 if anything was lost."""
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--out", type=Path, help="write the table to this file as JSON")
    options = parser.parse_args()
    tests = [f"tests/{test}" for _, named in FAULTS.values() for test in named]
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "faults.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--durations=0", f"--junitxml={report}", *tests]
        subprocess.run(command, cwd=ROOT, check=False)
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    rows = [row_of(name, FAULTS[name], cases) for name in FAULTS]
    width = max(map(len, FAULTS))
    print(f"\n{'fault':<{width}}  injected  survived  lost  not run")
    for row in rows:
        print(f"{row['fault']:<{width}}  {row['injected']:>8}  {row['survived']:>8}  {row['lost']:>4}  "
              f"{'; '.join(row['not_run'])}")  # fmt: skip
    sites = sorted({each.get("value", "") for case in cases for each in case.iter("property")})
    if options.out:
        options.out.write_text(json.dumps({**context("faults"), "faults": rows, "write_sites": sites}, indent=1) + "\n")
    return 1 if any(row["lost"] or not row["injected"] for row in rows) else 0


def row_of(name: str, fault: tuple[str, tuple[str, ...]], cases: list[ElementTree.Element]) -> dict[str, Any]:
    """Return how often a fault was injected and survived; a test that is missing counts as lost."""
    words, tests = fault
    found: list[ElementTree.Element] = []
    missing = 0
    for test in tests:
        path, _, function = test.partition("::")
        module = f"tests.{path.removesuffix('.py').replace('/', '.')}"
        own = [case for case in cases if case.get("classname") == module
               and (case.get("name") or "").partition("[")[0] == function]  # fmt: skip
        missing += not own
        found += own
    skipped = [case.find("skipped").get("message", "") for case in found if case.find("skipped") is not None]  # type: ignore[union-attr]
    broken = [case for case in found if case.find("failure") is not None or case.find("error") is not None]
    injected = len(found) - len(skipped)
    return {
        "fault": name, "survived_means": words, "injected": injected, "survived": injected - len(broken),
        "lost": len(broken) + missing, "not_run": sorted(set(skipped)), "tests": list(tests),
        "seconds": round(sum(float(case.get("time", 0)) for case in found), 1),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
