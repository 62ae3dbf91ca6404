"""The command ``bayes-sdc``: its commands, its version, and how it ends."""

import os
import sys
import traceback
from collections.abc import Callable
from typing import Annotated

import typer

from bayes_sdc.commands import audit, demo, flows, microdata, runs
from bayes_sdc.commands.options import as_typed
from bayes_sdc.commands.terminal import (
    EXIT_DEFECT,
    EXIT_INPUT,
    EXIT_INTERRUPTED,
    exit_code,
    limit_of_machine,
    say,
    steady_streams,
)
from bayes_sdc.errors import InputError

app = typer.Typer(
    help="Bayesian statistical disclosure control. `bayes-sdc COMMAND --help` has all options and "
    "an example; begin with `bayes-sdc demo`.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

EXAMPLES: dict[Callable[..., None], str] = {
    flows.flows: "bayes-sdc flows moves.csv --origin from --destination to --count n "
    "--groups from_state,to_state --policy policy.toml --out moves-run",
    microdata.microdata: "bayes-sdc microdata survey.csv --keys region,sex,age --weight w "
    "--population-size 5000000 --policy policy.toml --out survey-run",
    demo.simulate: "bayes-sdc simulate country.csv.gz --areas 300 --states 10",
    demo.demo: "bayes-sdc demo --out try-it",
    audit.audit: "bayes-sdc audit moves.csv --origin from --destination to --count n "
    "--published totals_by_origin.csv --hole x; bayes-sdc audit countyinflow1011.csv",
    runs.approve: "bayes-sdc approve moves-run --reason 'board decision of 15 January'",
    runs.doctor: "bayes-sdc doctor",
}
for command, example in EXAMPLES.items():
    app.command(epilog=f"Example: {example}")(command)


def _show_version(asked: bool) -> None:
    if asked:
        from bayes_sdc import __version__

        say(f"bayes-sdc {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options of the command itself."""


def main() -> None:
    """Run the command; bad input ends with one clear line and exit code 2."""
    # read when numpy is loaded: chains run side by side, and threads of linear algebra beneath them
    # wait for each other; on a busy machine small systems took thirty times as long
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    end_with(lambda: app(args=as_typed(sys.argv[1:])))


def end_with(job: Callable[[], None]) -> None:
    """Run a job and end the process; its exit code tells how."""
    steady_streams()
    try:
        sys.exit(exit_code(job))
    except InputError as error:
        sys.stderr.write(f"error: {error}\n")
        sys.exit(EXIT_INPUT)
    except KeyboardInterrupt:  # before or after what a command does
        sys.stderr.write("interrupted\n")
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:
        if (why := limit_of_machine(error)) is not None:
            sys.stderr.write(f"error: {why}\n")
            sys.exit(EXIT_INPUT)
        # not 1, which means that the job is done and a check failed
        traceback.print_exc()
        sys.exit(EXIT_DEFECT)


if __name__ == "__main__":
    main()
