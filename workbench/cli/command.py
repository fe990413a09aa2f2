"""``workbench VERB``: the parser, and the exit codes.

0 done; 1 the run failed; 2 the request was wrong; 3 a target was missed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable
from typing import Any, NoReturn

from workbench.errors import RunFailed, TargetMissed, WorkbenchError, unknown
from workbench.printable import plain_lines

DONE, FAILED, WRONG, MISSED = 0, 1, 2, 3
Verb = Callable[[argparse.Namespace], int]

DELEGATED = {
    "bench": ("workbench.bench", "benchmarks against other trainers; `workbench bench` lists them"),
    "demo": ("workbench.demo", "train the baseline and the fast recipe side by side and compare them"),
}
"""Verbs whose package stands beside or above the command line: started by name, with their own options."""


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code. Errors are one message on stderr, never a traceback."""
    argv = sys.argv[1:] if argv is None else argv
    # Looked for by hand: with --json, an option that cannot be parsed gets its answer in JSON, too.
    as_json = "--json" in argv
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could stand at the cursor
        import argcomplete

        argcomplete.autocomplete(_parser())
    try:
        code = _run(argv)
        # Here, while an error can still be told: at exit the interpreter would complain in words of its own.
        sys.stdout.flush()
        return code
    except WorkbenchError as error:
        return _fail(WRONG, error, as_json)
    except TargetMissed as error:
        # The verb has printed the run's JSON, the missed target in it; a second object would break its readers.
        return _fail(MISSED, error, False)
    except (RunFailed, TimeoutError) as error:
        return _fail(FAILED, error, as_json)
    except BrokenPipeError:
        # The reader (`| head`) has enough; keep Python from complaining about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except OSError as error:
        # A full disk, a folder of somebody else: the system's own words name the file.
        return _fail(FAILED, error, as_json)
    except KeyboardInterrupt:
        return _fail(FAILED, "interrupted", False)


def _run(argv: list[str]) -> int:
    if argv and argv[0] in DELEGATED:
        module = importlib.import_module(DELEGATED[argv[0]][0])
        code: int = module.main(argv[1:])
        return code
    if argv[:1] == ["--version"]:
        from workbench import __version__

        print(f"workbench {__version__}")
        return DONE
    parser = _parser()
    options, rest = parser.parse_known_args(argv)
    # Of `tag RUN +a -b` the parser takes -b for an option that it does not know.
    if options.command == "tag" and not any(text.startswith("--") for text in rest):
        options.changes, rest = options.changes + rest, []
    if rest:
        bare = options.command == "set" and "=" not in options.assignment
        hint = f"; write {options.assignment}={rest[0]}" if bare else ""
        raise WorkbenchError(f"unrecognized arguments: {' '.join(rest)}{hint}; see `{options.prog} --help`")
    # Only the verb's own module is imported: listing runs must not wait for torch.
    module_name, _, function = options.verb.partition(":")
    verb: Verb = getattr(importlib.import_module(f"workbench.cli.{module_name}"), function)
    return verb(options)


def _fail(code: int, error: object, as_json: bool) -> int:
    print(f"error: {plain_lines(error)}", file=sys.stderr)
    try:
        if as_json:
            print(json.dumps({"error": str(error), "exit_code": code}))
        sys.stdout.flush()
    except OSError:
        # It is stdout that cannot be written to: what is left for it would be one more error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


class _Parser(argparse.ArgumentParser):
    """Names the nearest verb or option, like every other error here, instead of listing all of them in quotes."""

    def error(self, message: str) -> NoReturn:
        raise WorkbenchError(f"{message}; see `{self.prog} --help`")

    # argparse's own text quotes every legal name, which buries the one that was meant.
    def _check_value(self, action: argparse.Action, value: Any) -> None:
        legal = [str(choice) for choice in action.choices or ()]
        if legal and value not in legal:
            self.error(unknown(action.dest, value, legal))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="workbench",
        description="Compose, launch, watch and measure language-model pre-training.",
        epilog='tab completion in bash and zsh: eval "$(register-python-argcomplete workbench)"',
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    verbs = parser.add_subparsers(dest="command", required=True, metavar="VERB", parser_class=_Parser)
    for name, (_, text) in DELEGATED.items():
        # For the list alone: their own parsers answer their --help, see `_run`.
        verbs.add_parser(name, help=text, add_help=False)

    train = _verb(verbs, "train", "training:train", "train in the foreground; Ctrl-C stops with a checkpoint")
    _add_recipe(train)
    train.add_argument("--profile", action="store_true", help="profile the first steps: where their time goes")
    train.add_argument("--target-loss", type=float, metavar="NATS", help="exit with 3 if held-out loss ends above it")
    launch = _verb(verbs, "launch", "training:launch", "train in the background; prints the run id")
    _add_recipe(launch)
    for starting in (train, launch):
        starting.add_argument(
            "--now", action="store_true", help="skip the queue and train beside other runs (in Python: queue=False)"
        )
        starting.add_argument("--priority", type=int, default=0, metavar="N", help="in the queue: higher goes first")
    _add_queue(verbs)
    _add_race(verbs)
    _add_sweep(verbs)
    _add_tune(verbs)

    ahead = _verb(verbs, "forecast", "forecasting:show", "forecast memory, time and cost on this machine")
    _add_recipe(ahead).add_argument("--run", metavar="RUN", help="a run's recipe, compared with what it measured")
    ahead.add_argument("--measure", action="store_true", help="measure this machine again first: 20 s")
    ahead.add_argument("--price", type=float, metavar="N", help="price of the device per hour, in any currency")

    _add_recipe(_verb(verbs, "plan", "planning:plan", "find the fastest, or leanest, execution here: 30 s"))

    listing = _verb(verbs, "runs", "runs:runs", "list all runs, newest first")
    listing.add_argument(
        "--tag", action="append", default=[], metavar="TAG", help="only runs with this tag; repeatable"
    )
    listing.add_argument("--limit", type=int, default=30, metavar="N", help="at most this many (default 30; 0: all)")
    _add_comparing(verbs)
    _run_verb(verbs, "watch", "runs:watch", "follow a run in the terminal; Ctrl-C leaves it running")
    for verb, text in _REQUESTS.items():
        asking = _run_verb(verbs, verb, "runs:ask", text)
        asking.add_argument(
            "--timeout", type=float, default=60.0, metavar="SECONDS", help="how long to wait for the run to take it up"
        )
        asking.add_argument("--take-over", action="store_true", help="take over from whoever else steers the run")
        if verb == "set":
            asking.add_argument("assignment", metavar="PATH=VALUE", help="for example optimizer.lr=1e-4")
    fork = _run_verb(verbs, "fork", "training:fork", "continue from a checkpoint in a new run; prints its id")
    fork.add_argument("--checkpoint", type=int, metavar="N", help="the checkpoint of this step (default: the newest)")
    _add_changes(fork)
    _add_keeping(verbs)
    export = _run_verb(
        verbs,
        "export",
        "runs:export",
        "export the model as a folder, which transformers loads if it knows the architecture",
    )
    export.add_argument("target", metavar="FOLDER", help="a new folder")
    text = "write report.html for a run, race, sweep or tuning, from what it has recorded so far"
    _held_verb(verbs, "report", "runs:report", text)
    text = "write a notebook that repeats a run, race, sweep or tuning"
    repeat = _held_verb(verbs, "notebook", "notebook:notebook", text)
    repeat.add_argument("-o", "--out", metavar="FILE", help="where to write it (default: ID.ipynb in this folder)")
    _run_verb(verbs, "graphs", "runs:graphs", "list the graph files optimised by execution 'onnxruntime'")
    _run_verb(verbs, "log", "runs:log", "print the end of the run's log").add_argument(
        "--lines", type=int, default=40, metavar="N", help="how many lines (default 40)"
    )
    choices = _verb(verbs, "choices", "catalogue:choices", "list the choices that make up recipes", runs=False)
    choices.add_argument("axis", nargs="?", metavar="AXIS", help="only this axis, for example optimizer")
    _add_engines(verbs)
    _verb(verbs, "presets", "catalogue:presets", "list the named recipes", runs=False)
    return parser


_REQUESTS = {
    "stop": "stop after the current step, with a checkpoint",
    "pause": "pause after the current step",
    "resume": "continue a paused run, or one that ended early from its last checkpoint",
    "checkpoint": "save a checkpoint now",
    "evaluate": "measure the held-out loss now",
    "profile": "profile the next 40 steps: where their time goes",
    "set": "change a knob of a running run",
}


def _verb(verbs: Any, name: str, function: str, text: str, *, runs: bool = True) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text)
    parser.set_defaults(verb=function, prog=parser.prog)
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else on stdout")
    if runs:
        parser.add_argument("--runs", metavar="DIR", help="the runs folder (else $WORKBENCH_RUNS, else ./runs)")
    return parser


def _run_verb(verbs: Any, name: str, function: str, text: str) -> argparse.ArgumentParser:
    parser = _verb(verbs, name, function, text)
    run = parser.add_argument("run", metavar="RUN", help="a run id, a unique prefix of one, a name, or a run folder")
    run.completer = _run_ids  # type: ignore[attr-defined]
    return parser


def _held_verb(verbs: Any, name: str, function: str, text: str) -> argparse.ArgumentParser:
    parser = _verb(verbs, name, function, text)
    held = parser.add_argument(
        "run", metavar="RUN|EXPERIMENT", help="an id, a unique prefix of one, a name, or a folder"
    )
    held.completer = _run_ids  # type: ignore[attr-defined]
    return parser


def _run_ids(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    from workbench.runs.find import run_ids
    from workbench.runs.folder import runs_root

    return run_ids(runs_root(getattr(parsed_args, "runs", None)))


def _add_comparing(verbs: Any) -> None:
    text = "compare runs side by side: what they achieved, and the knobs that differ"
    beside = _verb(verbs, "compare", "comparing:compare", text)
    several = beside.add_argument(
        "run", nargs="+", metavar="RUN", help="ids or unique prefixes of them, names, or globs ('bert*')"
    )
    several.completer = _run_ids  # type: ignore[attr-defined]
    beside.add_argument("--report", metavar="FILE", help="write tables and plots to this file as one HTML page")


def _add_keeping(verbs: Any) -> None:
    rename = _run_verb(verbs, "rename", "keeping:rename", "give a run another name; without one, print what it has")
    rename.add_argument("name", nargs="?", metavar="NAME", help="the new name; '' brings the recipe's back")
    tag = _run_verb(verbs, "tag", "keeping:tag", "add and remove tags: `tag RUN +good -todo`")
    tag.add_argument("changes", nargs="*", metavar="+TAG|-TAG", help="tags to add or remove; without any, print them")
    note = _run_verb(verbs, "note", "keeping:note", "set a run's notes; without text, print them")
    note.add_argument("text", nargs="?", metavar="TEXT", help="replaces the notes")
    delete = _verb(verbs, "delete", "keeping:delete", "move ended runs to the trash")
    delete.add_argument("run", nargs="+", metavar="RUN", help="run ids, unique prefixes of them, or run folders")
    _run_verb(verbs, "restore", "keeping:restore", "bring a deleted run back")
    trash = _verb(verbs, "trash", "keeping:trash", "list deleted runs")
    trash.add_argument("--empty", action="store_true", help="remove them for good")
    for asking in (delete, trash):
        asking.add_argument("--yes", action="store_true", help="do not ask for confirmation")


def _add_engines(verbs: Any) -> None:
    text = "list, install or remove execution engines that need their own Python environment"
    engines = _verb(verbs, "engines", "engines:engines", text, runs=False)
    engines.add_argument("action", choices=("list", "install", "remove"), metavar="list|install|remove")
    engines.add_argument("engine", nargs="?", metavar="NAME", help="for example onnxruntime")
    engines.add_argument("--python", metavar="PATH", help="the Python to install with (default: this one, if suitable)")


def _add_queue(verbs: Any) -> None:
    text = "show and change what trains and waits on this machine: list, move, cancel, priority, start, set"
    queue = _verb(verbs, "queue", "queue:queue", text)
    queue.add_argument(
        "action", nargs="?", default="list", choices=("list", "move", "cancel", "priority", "start", "set"),
        metavar="list|move|cancel|priority|start|set", help="what to do (default: list)",
    )  # fmt: skip
    queue.add_argument(
        "arguments", nargs="*", metavar="ARGUMENT", help="move RUN PLACE among your runs (1: next); cancel RUN ...; "
        "priority RUN NUMBER (higher goes first); start re-queues runs left over from a reboot; set NAME=NUMBER ... "
        "(cores, runs_per_gpu, running_per_owner, waiting_per_owner; empty: the default)",
    )  # fmt: skip


def _add_race(verbs: Any) -> None:
    text = "race recipes against a baseline over paired seeds; or follow an existing race"
    race = _verb(verbs, "race", "racing:race", text)
    race.add_argument(
        "arms", nargs="*", metavar="[NAME=]RECIPE|RACE", help="presets or recipe files, the baseline first, changed as "
        "in mine=fast:optimizer.lr=1e-3,depth=progressive_drop; or the id of a race; without any, lists races",
    )  # fmt: skip
    race.add_argument("--budget", metavar="TEXT", help="budget per run: '60 s' of reference time (default: what the "
                      "baseline's own budget takes), '600 steps', '1e6 tokens' or '2e15 flops'")  # fmt: skip
    race.add_argument("--seeds", default="6", metavar="N", help="at most this many (default 6), or a list: 10,11,12")
    race.add_argument("--baseline", metavar="NAME", help="the arm that the others are compared with")
    race.add_argument("--reference", default="0.5,2", metavar="RATIOS", help="multiples of the budget at which the "
                      "baseline also trains, to measure speed-ups (default 0.5,2; or none)")  # fmt: skip
    _add_fail_on(race, "if an arm has this verdict or a worse one (default never)")
    _add_experiment(race, "race", "arms", results="as JSON, and as JUnit XML beside it")


def _add_sweep(verbs: Any) -> None:
    text = "train one recipe at many settings; or follow, show, resume or cancel an existing sweep"
    sweep = _verb(verbs, "sweep", "sweeping:sweep", text)
    sweep.add_argument("recipe", nargs="?", metavar="RECIPE|SWEEP", help="a preset or recipe file, with changes as "
                       "in fast:depth=full; or the id or name of a sweep; without any, lists sweeps")  # fmt: skip
    sweep.add_argument("--over", action="append", default=[], metavar="PATH=VALUES", help="a knob and its values, "
                       "optimizer.lr=1e-3,2e-3, or a range, optimizer.lr=1e-4..1e-2; repeatable")  # fmt: skip
    sweep.add_argument("--sampler", default="grid", metavar="grid|random|stepwise|tpe|gp", help="how points are "
                       "chosen (default grid)")  # fmt: skip
    sweep.add_argument("--points", type=int, metavar="N", help="number of points (default: all of a grid)")
    sweep.add_argument("--seeds", default="1", metavar="N", help="seeds per point (default 1, from 1000 on), or a "
                       "list: 1000,1001")  # fmt: skip
    sweep.add_argument("--budget", metavar="TEXT", help="budget per run: '60 s' of reference time, '600 steps', "
                       "'1e6 tokens' or '2e15 flops' (default: the recipe's own)")  # fmt: skip
    sweep.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the sampler (default 0)")
    sweep.add_argument(
        "--early-stopping", metavar="halving", help="stop weak points at a quarter and at half of the budget"
    )
    _add_experiment(sweep, "sweep", "points")


def _add_tune(verbs: Any) -> None:
    text = "find a better recipe within a total budget; or follow, show, resume or cancel an existing tuning"
    tune = _verb(verbs, "tune", "tuning:tune", text)
    tune.add_argument("recipe", nargs="?", metavar="RECIPE|TUNING", help="a preset or recipe file, with changes as "
                      "in fast:depth=full; or the id or name of a tuning; without any, lists tunings")  # fmt: skip
    tune.add_argument("--budget", metavar="TIME", help="total for all runs, tuning and race: '2 hours'")
    tune.add_argument("--axis", action="append", default=[], metavar="NAME", help="tune only this: rate, architecture, "
                      "depth, optimizer, data or schedule; repeatable (default: all, in this order)")  # fmt: skip
    tune.add_argument("--over", action="append", default=[], metavar="PATH=VALUES", help="tune this knob instead: "
                      "values, depth.kind=full,stacking, or a range, optimizer.lr=1e-4..1e-2; repeatable")  # fmt: skip
    tune.add_argument("--each", metavar="TIME", help="time per run (default: what the recipe's own budget takes)")
    tune.add_argument(
        "--seeds", default="2", metavar="N", help="number of seeds to tune on (default 2, from 1000 on), or a list"
    )
    tune.add_argument(
        "--race-seeds", metavar="N", help="number of seeds in the race (default 10, 6 or 4, as the budget allows)"
    )
    tune.add_argument(
        "--share", type=float, default=0.6, metavar="X", help="share of the budget for tuning (default 0.6)"
    )
    tune.add_argument("--tuned", metavar="FILE", help="write the recipe it found to this file")
    _add_fail_on(tune, "if the race gives the tuned recipe this verdict; not-better: also if nothing paid off "
                 "(default never: exit with 0 once it has ended, confirmed or not)")  # fmt: skip
    _add_experiment(tune, "tuning", "settings", results="with all evidence as JSON", clock=False)


def _add_fail_on(parser: argparse.ArgumentParser, where: str) -> None:
    """For CI: which verdicts fail it, each with all before it."""
    parser.add_argument("--fail-on", default="never", metavar="never|worse|undecided|not-better",
                        help=f"exit with 3 {where}")  # fmt: skip


def _add_experiment(
    parser: argparse.ArgumentParser, noun: str, parts: str, *, results: str = "as JSON", clock: bool = True
) -> None:
    """What every experiment takes: what is compared, on which clock, and how it is begun, left and ended."""
    parser.add_argument("--score", default="nats", metavar="nats|bits_per_byte", help="score to compare (default nats)")
    if clock:
        parser.add_argument("--clock", default="reference", metavar="reference|measured",
                            help="count seconds by the forecast, or as measured in each run")  # fmt: skip
    parser.add_argument("--results", metavar="FILE", help=f"write the result to this file {results}")
    parser.add_argument("--report", metavar="FILE", help="write tables and plots to this file as one HTML page")
    parser.add_argument("--dry-run", action="store_true", help="only print what it would take")
    parser.add_argument("--detach", action="store_true", help=f"do not wait for the end; print the {noun} id")
    parser.add_argument("--show", action="store_true", help=f"print the current state of a {noun} without following it")
    parser.add_argument("--cancel", action="store_true", help=f"cancel an existing {noun} and stop its runs")
    parser.add_argument(
        "--set", action="append", default=[], metavar="PATH=VALUE", help=f"change a knob in all {parts}; repeatable"
    )
    _add_text(parser)
    parser.add_argument("--name", metavar="TEXT", help=f"name of the {noun}, to find it again")


def _add_recipe(parser: argparse.ArgumentParser) -> argparse._MutuallyExclusiveGroup:
    """Options that say where a recipe comes from and what is changed in it; returns the group of the former."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--preset", metavar="NAME", help="start from this preset (`workbench presets`)")
    source.add_argument("--recipe", metavar="FILE", help="start from this recipe.json")
    _add_text(parser)
    _add_changes(parser)
    return source


def _add_text(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--text", action="append", default=[], metavar="PATH", help="train on these files or folders: .txt, .md, "
        ".jsonl, .parquet, ...; repeatable",
    )  # fmt: skip


def _add_changes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="change a knob; the value is JSON or plain text; repeatable",
    )
    parser.add_argument("--budget", metavar="TEXT", help="for example '200 steps', '1.5M tokens', '90 s'")
    parser.add_argument("--seed", type=int, metavar="N", help="seed of initialisation, data order and masks")
    parser.add_argument("--name", metavar="TEXT", help="name of the run in lists and plots")
