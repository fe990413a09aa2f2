"""The verbs of ``workbench`` with their options."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, NoReturn, cast

from workbench.base.errors import WorkbenchError, unknown
from workbench.cli import afar, workshop

DELEGATED = {
    "bench": ("workbench.bench", "benchmarks against other trainers; `workbench bench` lists them"),
    "demo": ("workbench.experiments.demo", "train the baseline and the fast recipe side by side and compare them"),
    "new": ("workbench.cli.new", "write a package with a choice, plot or benchmark of your own, ready to change"),
    "send": ("workbench.cli.sending", "runs in the files of TensorBoard, W&B, MLflow, trackio; as CSV or Parquet"),
}
"""Verbs whose package stands beside or above the command line: started by name, with their own options."""
_REQUESTS = {
    "stop": "stop after the current step, with a checkpoint",
    "pause": "pause after the current step",
    "resume": "continue a paused run, or one that ended early from its last checkpoint",
    "checkpoint": "save a checkpoint now",
    "evaluate": "measure the held-out loss now",
    "profile": "profile the next 40 steps: where their time goes; of a run that has ended, the profile that it has",
    "set": "change a knob of a running run",
}
_PAGE = "write tables and plots to this file as one HTML page"


class Parser(argparse.ArgumentParser):
    """Names the nearest verb or option, like every other error here, instead of listing all of them in quotes."""

    def error(self, message: str) -> NoReturn:
        raise WorkbenchError(f"{message}; see `{self.prog} --help`")

    # argparse's own text quotes every legal name, which buries the one that was meant.
    def _check_value(self, action: argparse.Action, value: Any) -> None:
        legal = [str(choice) for choice in action.choices or ()]
        if legal and value not in legal:
            self.error(unknown(action.dest, value, legal))

    def take(self, written: str, text: str | None, *, repeatable: bool = False, **more: Any) -> None:
        """Take an option, written as ``--name VALUE``, a switch, ``--name``, or an argument, ``name VALUE``."""
        name, _, value = written.partition(" ")
        more |= {"metavar": value} if value else {"action": "store_true"}
        more |= {"action": "append", "default": []} if repeatable else {}
        action = self.add_argument(name, help=text, **more)
        if name == "run":
            action.completer = _run_ids  # type: ignore[attr-defined]


def whole(legal: str = "") -> Callable[[str], int]:
    """Return a reader of whole numbers, for an option's ``type``; ``legal`` is named where there is none."""
    return _reader(int, "a whole number", legal)


def number(legal: str = "") -> Callable[[str], float]:
    """Return a reader of numbers, for an option's ``type``; ``legal`` is named where there is none."""
    return _reader(float, "a number", legal)


def _reader(read: Callable[[str], Any], what: str, legal: str) -> Callable[[str], Any]:
    def checked(text: str) -> Any:
        try:
            return read(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"'{text:.60}' is not {what}{legal and '; legal: '}{legal}") from None

    return checked


def verb_parser() -> Parser:
    """Return the parser of the whole command line: ``options.verb`` names the function that answers."""
    parser = Parser(
        prog="workbench",
        description="Compose, launch, watch and measure language-model pre-training.",
        epilog='tab completion in bash and zsh: eval "$(register-python-argcomplete workbench)"',
    )
    parser.take("--version", "print the version")
    verbs = parser.add_subparsers(dest="command", required=True, metavar="VERB", parser_class=Parser)
    for name, (_, text) in DELEGATED.items():
        # For the list alone: their own parsers answer their --help.
        verbs.add_parser(name, help=text, add_help=False)
    for add in (
        _add_training, _add_queue, _add_race, _add_sweep, _add_tune, _add_finetune, _add_forecast, _add_lists,
        _add_steering, _add_keeping, _add_readings, _add_rows, _add_scores, _add_catalogue,
    ):  # fmt: skip
        add(verbs)
    afar.add(verbs, _verb, number)
    workshop.add(verbs, _verb)
    return parser


def _verb(verbs: Any, name: str, function: str, text: str, *, runs: bool = True) -> Parser:
    parser = cast(Parser, verbs.add_parser(name, help=text, description=text))
    parser.set_defaults(verb=function, prog=parser.prog)
    parser.take("--json", "print one JSON object and nothing else on stdout")
    if runs:
        parser.take("--runs DIR", "the runs folder (else $WORKBENCH_RUNS, else ./runs)")
    return parser


def _run_verb(verbs: Any, name: str, function: str, text: str, noun: str = "RUN") -> Parser:
    parser = _verb(verbs, name, function, text)
    parser.take(f"run {noun}", "an id, a unique prefix of one, a name, or a folder")
    return parser


def _run_ids(parsed_args: argparse.Namespace, **_: Any) -> list[str]:
    from workbench.store.find import run_ids
    from workbench.store.folder import runs_root

    return run_ids(runs_root(getattr(parsed_args, "runs", None)))


def _add_training(verbs: Any) -> None:
    train = _verb(verbs, "train", "training:train", "train in the foreground; Ctrl-C stops with a checkpoint")
    _add_recipe(train)
    train.take("--profile", "profile the first steps: where their time goes")
    train.take("--target-loss NATS", "exit with 3 if held-out loss ends above it", type=number("nats, such as 6.5"))
    launch = _verb(verbs, "launch", "training:launch", "train in the background; prints the run id")
    _add_recipe(launch)
    text = "where: local (default), or slurm, ray or hand with knobs, as in slurm:nodes=2,partition=gpu,time_minutes=60"
    launch.take("--on NAME[:KNOB=VALUE,...]", text, default="local")
    for starting in (train, launch):
        starting.take("--now", "skip the queue and train beside other runs (in Python: queue=False)")
        text = "that train the run together, each on its share of every batch (default 1); on a cluster, of each node"
        starting.take("--processes N", text, type=whole("1 to 1024"))
        starting.take("--oversubscribe", "more processes than this machine has cores, which take turns")
        starting.take("--priority N", "in the queue: higher goes first", type=whole("-1000 to 1000"), default=0)


def _add_queue(verbs: Any) -> None:
    text = "show and change what trains and waits on this machine: list, move, cancel, priority, start, set"
    queue = _verb(verbs, "queue", "queue:queue", text)
    actions = ("list", "move", "cancel", "priority", "start", "set")
    queue.take(f"action {'|'.join(actions)}", "what to do (default: list)", nargs="?", default="list", choices=actions)
    text = (
        "move RUN PLACE among your runs (1: next); cancel RUN ...; priority RUN NUMBER (higher goes first); start "
        "re-queues runs left over from a reboot; set NAME=NUMBER ... (cores, runs_per_gpu, running_per_owner, "
        "waiting_per_owner, seconds_per_run; empty: the default). $WORKBENCH_OWNER tells people of one account apart"
    )
    queue.take("arguments ARGUMENT", text, nargs="*")


def _add_race(verbs: Any) -> None:
    text = "race recipes against a baseline over paired seeds; or follow, show or cancel an existing race"
    race = _verb(verbs, "race", "racing:race", text)
    text = (
        "presets or recipe files, the baseline first, changed as in mine=fast:optimizer.lr=1e-3,"
        "depth=progressive_drop; or the id of a race; without any, lists races"
    )
    race.take("arms [NAME=]RECIPE|RACE", text, nargs="*")
    race.take("--budget TEXT", "budget per run: '60 s' of reference time (default: what the baseline's own budget "
              "takes), '600 steps', '1e6 tokens' or '2e15 flops'")  # fmt: skip
    race.take("--seeds N", "at most this many (default 6), or a list: 10,11,12", default="6")
    race.take("--baseline NAME", "the arm that the others are compared with")
    text = "multiples of the budget at which the baseline also trains, to measure speed-ups (default 0.5,2; or none)"
    race.take("--reference RATIOS", text, default="0.5,2")
    _add_fail_on(race, "if an arm has this verdict or a worse one (default never)")
    _add_experiment(race, "race", "arms", results="as JSON, and as JUnit XML beside it")


def _add_sweep(verbs: Any) -> None:
    text = "train one recipe at many settings; or follow, show or cancel an existing sweep"
    sweep = _verb(verbs, "sweep", "sweeping:sweep", text)
    _add_start(sweep, "sweep")
    text = "a knob and its values, optimizer.lr=1e-3,2e-3, or a range, optimizer.lr=1e-4..1e-2; repeatable"
    sweep.take("--over PATH=VALUES", text, repeatable=True)
    sweep.take("--sampler grid|random|stepwise|tpe|gp", "how points are chosen (default grid)", default="grid")
    sweep.take("--points N", "number of points (default: all of a grid)", type=whole())
    sweep.take("--seeds N", "seeds per point (default 1, from 1000 on), or a list: 1000,1001", default="1")
    sweep.take("--budget TEXT", "budget per run: '60 s' of reference time, '600 steps', '1e6 tokens' or '2e15 flops' "
               "(default: the recipe's own)")  # fmt: skip
    sweep.take("--seed N", "seed of the sampler (default 0)", type=whole(), default=0)
    sweep.take("--early-stopping halving", "stop weak points at a quarter and at half of the budget")
    _add_experiment(sweep, "sweep", "points")


def _add_tune(verbs: Any) -> None:
    text = "find a better recipe within a total budget; or follow, show or cancel an existing tuning"
    tune = _verb(verbs, "tune", "tuning:tune", text)
    _add_start(tune, "tuning")
    tune.take("--budget TIME", "total for all runs, tuning and race: '2 hours'")
    tune.take("--axis NAME", "tune only this: rate, architecture, depth, optimizer, data or schedule; repeatable "
              "(default: all, in this order)", repeatable=True)  # fmt: skip
    tune.take("--over PATH=VALUES", "tune this knob instead: values, depth.kind=full,stacking, or a range, "
              "optimizer.lr=1e-4..1e-2; repeatable", repeatable=True)  # fmt: skip
    tune.take("--each TIME", "time per run (default: what the recipe's own budget takes)")
    tune.take("--seeds N", "number of seeds to tune on (default 2, from 1000 on), or a list", default="2")
    tune.take("--race-seeds N", "number of seeds in the race (default 10, 6 or 4, as the budget allows)")
    tune.take("--share X", "share of the budget for tuning (default 0.6)", type=number(), default=0.6)
    tune.take("--tuned FILE", "write the recipe it found to this file")
    _add_fail_on(tune, "if the race gives the tuned recipe this verdict; not-better: also if nothing paid off "
                 "(default never: exit with 0 once it has ended, confirmed or not)")  # fmt: skip
    _add_experiment(tune, "tuning", "settings", results="with all evidence as JSON", clock=False)


def _add_finetune(verbs: Any) -> None:
    text = "fine-tune a run's encoder on a task; or follow, show or cancel an existing fine-tuning"
    tune = _verb(verbs, "finetune", "finetuning:finetune", text)
    tune.take("run RUN|FINETUNING", "a run, or a folder of transformers; or the id or name of a fine-tuning; without "
              "any, lists fine-tunings", nargs="?")  # fmt: skip
    tune.take("task TASK", "boolq, mrpc, stsb, squad, ..., or a file: CSV, TSV, JSON lines, SQuAD's JSON", nargs="?")
    tune.take("--data DIR", "the folder with the tasks (else $WORKBENCH_EVAL)")
    tune.take("--text COLUMN", "of a file of your own: the column of the text; twice for pairs", repeatable=True)
    tune.take("--label COLUMN", "of a file of your own: the column of the label")
    tune.take("--form classes|numbers|answers", "of its labels (default: what they look like)")
    tune.take("--rates LIST", "learning rates to choose from: 1e-4,3e-4 (default: three that suit the width)")
    tune.take("--epochs X", "how often each example is read (default 3)", type=number(), default=3.0)
    tune.take("--batch N", "examples per step (default 16)", type=whole(), default=16)
    tune.take("--length N", "tokens of a row, at most (default: the encoder's longest row)", type=whole())
    tune.take("--limit N", "train on a sample of so many examples (default: all)", type=whole())
    tune.take("--seeds N", "seeds per rate (default 1), or a list: 0,1", default="1")
    tune.take("--untrained", "also fine-tune a twin that begins with fresh weights")
    tune.take("--checkpoint N", "the checkpoint of this step (default: the newest)", type=whole())
    tune.take("--results FILE", "write the result to this file as JSON")
    _add_held(tune, "fine-tuning", "runs")


def _add_start(parser: Parser, noun: str) -> None:
    parser.take(f"recipe RECIPE|{noun.upper()}", "a preset or recipe file, with changes as in fast:depth=full; or the "
                f"id or name of a {noun}; without any, lists {noun}s", nargs="?")  # fmt: skip


def _add_fail_on(parser: Parser, where: str) -> None:
    """For CI: which verdicts fail it, each with all before it."""
    parser.take("--fail-on never|worse|undecided|not-better", f"exit with 3 {where}; with --show, too, and with 1 "
                "before it has ended", default="never")  # fmt: skip


def _add_experiment(parser: Parser, noun: str, parts: str, *, results: str = "as JSON", clock: bool = True) -> None:
    """Add the options that every experiment takes."""
    parser.take("--score nats|bits_per_byte", "score to compare (default nats)", default="nats")
    if clock:
        text = "count seconds by the forecast, or as measured in each run"
        parser.take("--clock reference|measured", text, default="reference")
    parser.take("--results FILE", f"write the result to this file {results}")
    _add_held(parser, noun, parts)
    _add_text(parser)


def _add_held(parser: Parser, noun: str, parts: str) -> None:
    """Add the options of whatever has several runs."""
    parser.take("--report FILE", _PAGE)
    parser.take("--dry-run", "only print what it would take")
    parser.take("--detach", f"do not wait for the end; print the {noun} id")
    parser.take("--show", f"print the current state of a {noun} without following it")
    parser.take("--cancel", f"end an existing {noun} for good and stop its runs; to begin again, start a new one")
    parser.take("--set PATH=VALUE", f"change a knob in all {parts}; repeatable", repeatable=True)
    parser.take("--name TEXT", f"name of the {noun}, to find it again")


def _add_forecast(verbs: Any) -> None:
    ahead = _verb(verbs, "forecast", "forecasting:show", "forecast memory, time and cost on this machine")
    source = _add_recipe(ahead)
    source.add_argument("--run", metavar="RUN", help="a run's recipe, compared with what it measured")
    ahead.take("--measure", "measure this machine again first: 20 s")
    ahead.take("--price N", "price of the device per hour, in any currency", type=number())
    ahead.take("--devices LIST", "a step and the run on so many devices like this one, instead: 1,2,8,64")
    text = "with --devices: GB/s that each sends within its node and to others, and devices of a node"
    ahead.take("--links INSIDE,BETWEEN,NODE", text, default="250,22,8")
    ahead.take("--weak", "with --devices: the batch grows with them")
    ahead.take("--critical ROWS", "with --devices: the batch that needs twice the samples", type=number())
    _add_recipe(_verb(verbs, "plan", "planning:plan", "find the fastest, or leanest, execution here: 30 s"))
    preparing = _verb(verbs, "prepare", "preparing:prepare", "prepare a text, and print what its steps did to it")
    _add_recipe(preparing)
    preparing.take("--why TEXT", "list removed documents with this text, source or reason, and why they were left out")
    preparing.take("--html FILE", "also write a page with shares, reasons and texts to read")
    preparing.take("--datatrove FOLDER", "instead let datatrove apply the steps, and write what is left as JSON lines")


def _add_lists(verbs: Any) -> None:
    listing = _verb(verbs, "runs", "runs:runs", "list all runs, newest first")
    listing.take("--tag TAG", "only runs with this tag; repeatable", repeatable=True)
    listing.take("--limit N", "at most this many (default 30; 0: all)", type=whole(), default=30)
    text = "compare runs side by side: what they achieved, and the knobs that differ"
    beside = _verb(verbs, "compare", "comparing:compare", text)
    beside.take("run RUN", "ids or unique prefixes of them, names, or globs ('bert*')", nargs="+")
    beside.take("--report FILE", _PAGE)
    _run_verb(
        verbs, "watch", "runs:watch", "follow a run, or those of papermill's out.ipynb; Ctrl-C leaves them running"
    )


def _add_steering(verbs: Any) -> None:
    for verb, text in _REQUESTS.items():
        asking = _run_verb(verbs, verb, "runs:ask", text)
        asking.take("--timeout SECONDS", "how long to wait for the run to take it up", type=number(), default=60.0)
        asking.take("--take-over", "take over from whoever else steers the run")
        if verb == "set":
            asking.take("assignment PATH=VALUE", "for example optimizer.lr=1e-4")
    fork = _run_verb(verbs, "fork", "training:fork", "continue from a checkpoint in a new run; prints its id")
    fork.take("--checkpoint N", "the checkpoint of this step (default: the newest)", type=whole())
    _add_changes(fork)


def _add_keeping(verbs: Any) -> None:
    rename = _run_verb(verbs, "rename", "keeping:rename", "give a run another name; without one, print what it has")
    rename.take("name NAME", "the new name; '' brings the recipe's back", nargs="?")
    tag = _run_verb(verbs, "tag", "keeping:tag", "add and remove tags: `tag RUN +good -todo`")
    tag.take("changes +TAG|-TAG", "tags to add or remove; without any, print them", nargs="*")
    note = _run_verb(verbs, "note", "keeping:note", "set a run's notes; without text, print them")
    note.take("text TEXT", "replaces the notes", nargs="?")
    delete = _verb(verbs, "delete", "keeping:delete", "move ended runs to the trash")
    delete.take("run RUN", "run ids, unique prefixes of them, or run folders", nargs="+")
    _run_verb(verbs, "restore", "keeping:restore", "bring a deleted run back")
    trash = _verb(verbs, "trash", "keeping:trash", "list deleted runs")
    trash.take("--empty", "remove them for good")
    for asking in (delete, trash):
        asking.take("--yes", "do not ask for confirmation")


def _add_readings(verbs: Any) -> None:
    text = "export the model as a folder, which transformers loads if it knows the architecture"
    _run_verb(verbs, "export", "runs:export", text).take("target FOLDER", "a new folder")
    text = "write report.html for a run, race, sweep or tuning, from what it has recorded so far"
    _run_verb(verbs, "report", "runs:report", text, "RUN|EXPERIMENT")
    text = "write a notebook that repeats a run, race, sweep or tuning"
    repeat = _run_verb(verbs, "notebook", "notebook:notebook", text, "RUN|EXPERIMENT")
    # Two names of one option, which the shorthand has no form for.
    repeat.add_argument("-o", "--out", metavar="FILE", help="where to write it (default: ID.ipynb in this folder)")
    _run_verb(verbs, "graphs", "runs:graphs", "list the graph files optimised by execution 'onnxruntime'")
    log = _run_verb(
        verbs, "log", "runs:log", "print what has happened in a run, and the end of what its process printed"
    )
    log.take("--lines N", "how many events, and lines (default 40)", type=whole(), default=40)
    log.take("--rank N", "the log of this process, where several train it (default 0)", type=whole(), default=0)


def _add_rows(verbs: Any) -> None:
    text = "print rows of any step as the model sees them, or where a text was read and why it was left out"
    rows = _verb(verbs, "rows", "rows:show", text)
    rows.take("what RECIPE|RUN", "a run (id, name or folder), a preset, or a recipe's file")
    rows.take("--step N", "counted from 0; past or future (default 0)", type=whole(), default=0)
    rows.take("--rows N", "rows to print (default 4)", type=whole(), default=4)
    rows.take("--first N", "the first of them in the batch (default 0)", type=whole(), default=0)
    rows.take("--find TEXT", "find these words: documents, the steps that read them, and what was left out and why")


def _add_scores(verbs: Any) -> None:
    text = "score a model on benchmarks, beside the same model untrained and what needs no model"
    scoring = _run_verb(verbs, "score", "scoring:score", text)
    text = "blimp, blimp_supplement, lambada, arc_easy, piqa, copa, with commas between; fast: the first items of all"
    scoring.take("--on NAMES", text, default="fast")
    scoring.take("--fast", "the first 50 pairs of each paradigm, 100 questions, 200 passages alone")
    text = "folder with the files of the benchmarks (else $WORKBENCH_EVAL, else the Hugging Face Hub)"
    scoring.take("--data DIR", text)
    filling = _run_verb(verbs, "fill", "scoring:fill", "print the likeliest words at the [MASK] of a text")
    filling.take("text TEXT", "for example 'The [MASK] sat.'")
    filling.take("--top N", "number of words (default 5)", type=whole(), default=5)
    going_on = _run_verb(verbs, "generate", "scoring:generate", "let a model continue a text")
    going_on.take("prompt PROMPT", "its beginning, for example 'Once upon a time'")
    going_on.take("--tokens N", "at most so many (default 40)", type=whole(), default=40)
    text = "0 takes the likeliest token, 1 draws as the model says (default 0.8)"
    going_on.take("--temperature X", text, type=number(), default=0.8)
    going_on.take("--top-k N", "draw among so many tokens; 0: all (default 40)", type=whole(), default=40)
    going_on.take("--seed N", "of the draws (default 0)", type=whole(), default=0)
    for parser in (scoring, filling, going_on):
        parser.take("--step N", "the checkpoint of this step (default: the newest)", type=whole())


def _add_catalogue(verbs: Any) -> None:
    choices = _verb(verbs, "choices", "catalogue:choices", "list the choices that make up recipes", runs=False)
    choices.take("axis AXIS", "only this axis, for example optimizer", nargs="?")
    choices.take("kind KIND", "only this choice, for example lans, and its card: how it works, evidence", nargs="?")
    text = "list, install or remove execution engines that need their own Python environment"
    engines = _verb(verbs, "engines", "engines:engines", text, runs=False)
    engines.take("action list|install|remove", None, choices=("list", "install", "remove"))
    engines.take("engine NAME", "for example onnxruntime", nargs="?")
    engines.take("--python PATH", "the Python to install with (default: this one, if suitable)")
    _verb(verbs, "presets", "catalogue:presets", "list the named recipes", runs=False)


def _add_recipe(parser: Parser) -> argparse._MutuallyExclusiveGroup:
    """Return options that say where a recipe comes from and what is changed in it; returns the group of the former."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--preset", metavar="NAME", help="start from this preset (`workbench presets`)")
    source.add_argument("--recipe", metavar="FILE", help="start from this recipe.json")
    _add_text(parser)
    _add_changes(parser)
    return source


def _add_text(parser: Parser) -> None:
    text = "train on these files or folders: .txt, .md, .jsonl, .parquet, ...; repeatable"
    parser.take("--text PATH", text, repeatable=True)


def _add_changes(parser: Parser) -> None:
    text = "change a knob; the value is JSON or plain text; repeatable"
    parser.take("--set PATH=VALUE", text, repeatable=True)
    parser.take("--budget TEXT", "for example '200 steps', '1.5M tokens', '90 s'")
    parser.take("--seed N", "seed of initialisation, data order and masks", type=whole("0 to 2,147,483,647"))
    parser.take("--name TEXT", "name of the run in lists and plots")
