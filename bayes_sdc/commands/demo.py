"""``bayes-sdc demo`` and ``simulate``: an invented country to try things on."""

from pathlib import Path
from typing import Annotated

import typer

from bayes_sdc.commands import flows, microdata
from bayes_sdc.commands.beside import beside
from bayes_sdc.commands.options import RELEASE, Cores, Out, Sampler, option
from bayes_sdc.commands.terminal import exit_code, interruptible, say

# run by another interpreter, which has the arguments of this command
PERSONS_BESIDE = (
    "from bayes_sdc import cli; from bayes_sdc.commands.demo import persons; "
    "cli.end_with(lambda: persons({!r}, {}))"
)


@interruptible("the same command starts from the beginning")
def simulate(
    file: Annotated[Path, typer.Argument(help="CSV file to write (also .csv.gz) or Parquet.")],
    areas: Annotated[int, typer.Option(help="Number of areas.")] = 80,
    states: Annotated[int, typer.Option(help="Number of states they are spread over.")] = 4,
    small: Annotated[
        int | None, typer.Option(help="Number of counts from 1 to 9 to expect.")
    ] = None,
    truth: Annotated[
        bool, typer.Option("--truth", help="Add columns with the rates behind the counts.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.")] = 1,
    areas_file: Annotated[
        Path | None,
        typer.Option(help="CSV or Parquet file to write too: area, state, population, place."),
    ] = None,
) -> None:
    """Write a table of flows of an invented country: to try things on, of any size."""
    from bayes_sdc.jobs.simulation import run_simulation

    made = run_simulation(
        file,
        areas=areas,
        states=states,
        small=small,
        truth=truth,
        seed=seed,
        areas_file=areas_file,
    )
    say("\n".join(made))


@interruptible("the same command continues")
def demo(
    out: Out = Path("bayes-sdc-demo"),
    seed: Annotated[int, option("The same seed gives the same results.", RELEASE)] = 1,
    sampler: Sampler = "gibbs",
    cores: Cores = None,
) -> None:
    """Run both jobs on the bundled files of an invented country."""
    from bayes_sdc.flows.compiling import start_compiling
    from bayes_sdc.flows.fit.settings import sampling_of
    from bayes_sdc.flows.table.simulate import example_flows_path
    from bayes_sdc.microdata.file.simulate import example_persons_path
    from bayes_sdc.runs import discard_finished, is_interrupted

    # refuse before an earlier demo is deleted; that one can be made again
    sampling_of(
        family="default", prior="default", sampler=sampler, draws=1, tune=None, chains=1,
        seed=seed, cores=cores, scheduler=None,
    )  # fmt: skip
    discard_finished(out, example_flows_path())
    discard_finished(out / "microdata", example_persons_path())
    if sampler == "gibbs":
        start_compiling()
    with beside(PERSONS_BESIDE.format(str(out), seed)) as end_of_persons:
        ended = exit_code(
            flows.run_and_tell,
            example_flows_path(),
            reading={
                "origin": "origin",
                "destination": "destination",
                "count": "count",
                "groups": ["origin_state", "destination_state"],
            },
            gravity={},
            shapes={},
            policy=None,
            out=out,
            seed=seed,  # the data are invented, so nobody is protected by a secret one
            resume=is_interrupted(out),
            arguments={"sampler": sampler, "cores": cores},
        )
        ended = end_of_persons() or ended
    if ended:
        raise typer.Exit(ended)


def persons(out: str, seed: int) -> None:
    """Run the job on the bundled persons, in the process that the demo has beside the flows.

    Parameters
    ----------
    out : str
        Folder of the demo.
    seed : int
        Of the demo.
    """
    from bayes_sdc.microdata.file.simulate import EXAMPLE_KEYS, PERSONS, example_persons_path

    microdata.run_and_tell(
        example_persons_path(),
        reading={"keys": list(EXAMPLE_KEYS), "weight": "weight", "household": "household"},
        policy=None,
        arguments={"population_size": PERSONS, "seed": seed},
        truth="population_count",
        key_sets={},
        out=Path(out) / "microdata",
    )
