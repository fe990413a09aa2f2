"""``workbench VERB``: what is run for it, and the exit codes.

0 done; 1 the run failed, was interrupted, or found no disk space; 2 the request was wrong; 3 a target was missed.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import sys
from collections.abc import Callable

from workbench.base.errors import RunFailed, TargetMissed, WorkbenchError
from workbench.base.text import escape_unprintable, plain_lines
from workbench.cli.verbs import DELEGATED, verb_parser

DONE, FAILED, WRONG, MISSED = 0, 1, 2, 3
Verb = Callable[[argparse.Namespace], int]


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit code. Errors are one message on stderr, never a traceback."""
    argv = sys.argv[1:] if argv is None else argv
    escape_unprintable()
    # Looked for by hand: with --json, an option that cannot be parsed gets its answer in JSON, too.
    as_json = "--json" in argv
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could stand at the cursor
        import argcomplete

        argcomplete.autocomplete(verb_parser())
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
    parser = verb_parser()
    options, rest = parser.parse_known_args(argv)
    # Of `tag RUN +a -b` the parser takes -b for an option that it does not know.
    if options.command == "tag" and not any(text.startswith("--") for text in rest):
        options.changes, rest = options.changes + rest, []
    if rest:
        bare = options.command == "set" and "=" not in options.assignment
        hint = f"; write {options.assignment}={rest[0]}" if bare else ""
        if hasattr(options, "preset") and not rest[0].startswith("-"):
            hint = f"; a preset is named so: --preset {rest[0]}"
        if options.command == "train" and rest[0] == "--on":
            hint = "; `workbench launch` takes it, and train trains here"
        raise WorkbenchError(f"unrecognized arguments: {' '.join(rest)}{hint}; see `{options.prog} --help`")
    # Only the verb's own module is imported: listing runs must not wait for torch.
    verb: Verb = pkgutil.resolve_name(f"workbench.cli.{options.verb}")
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
