"""Fixtures and hypothesis profiles that all tests share."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("fast", max_examples=25, deadline=None)
settings.register_profile("deep", max_examples=500, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile what a run needs before parallel workers start: each would do it for itself."""
    asked = session.config.option
    controls = bool(getattr(asked, "numprocesses", None))  # of a worker it is not set
    if controls and not asked.collectonly:
        from bayes_sdc.flows.compiling import finish_compiling

        finish_compiling()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of the public files that are not in the repository; mark the test shared_data."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("BAYES_SDC_SHARED_DATA", beside))
    if not folder.is_dir():
        pytest.skip("the shared data are not here; BAYES_SDC_SHARED_DATA can name the folder")
    return folder


@pytest.fixture(scope="module")
def sketches() -> Iterator[None]:
    """Draw the pictures of reports, but do not save them: nobody looks, and it takes longest."""
    with _sketching():
        yield


@pytest.fixture(scope="module")
def short_chains() -> Iterator[None]:
    """Few sweeps of the latent classes, where a test is about what is done with them."""
    with pytest.MonkeyPatch.context() as patch:
        sample_little(patch)
        yield


def sample_little(patch: pytest.MonkeyPatch) -> None:
    """Let the latent classes end after a tenth of their sweeps."""
    from bayes_sdc.microdata.latent_classes import gibbs

    for place in ("latent_classes.risk", "treatment.states"):
        plan = gibbs.Plan(classes=40, warm_up=100, draws=40, every=5)
        patch.setattr(f"bayes_sdc.microdata.{place}.plan_for", lambda *_, plan=plan: plan)


@pytest.fixture
def sketched() -> Iterator[None]:
    """The same for one test of a file whose other tests look at the pictures."""
    with _sketching():
        yield


@contextmanager
def _sketching() -> Iterator[None]:
    import matplotlib
    from markupsafe import Markup
    from matplotlib.figure import Figure

    from bayes_sdc.report import plots

    def sketch(name: str, label: str, draw, size: tuple[float, float] = plots.SIZE) -> Markup:
        with matplotlib.rc_context(plots.STYLE):
            draw(Figure(figsize=size))
        return Markup('<svg class="plot" role="img" aria-label="{}"></svg>').format(label)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plots, "draw_svg", sketch)
        yield
