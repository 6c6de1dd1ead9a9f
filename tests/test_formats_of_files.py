"""Files of another version: a newer one is refused with a sentence that says what to do, by every reader."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bothworlds as bw
from bothworlds.logs.schema import SCHEMA, Row, line_of, record_of
from bothworlds.problem.file_format import migration
from bothworlds.studies.toml import to_toml

NEWER = "newer bothworlds, which this one cannot read; install that version"
OLDER = "older bothworlds; the changelog says"
STUDY = {"environments": {"calm": {"kind": "stochastic"}}, "algorithms": {"all": {"kind": "uniform"}}, "horizon": 20}


def problem() -> bw.Problem:
    return bw.Problem(features=[[[1, 0], [0, 1]]], probabilities=[1], arms=["red", "blue"])


def saved(kind: str, path: Path) -> Callable[[Path], Any]:
    """Write a file of a kind; return its reader."""
    policy = bw.FixedPolicy().start(problem(), rng=7)
    if kind == "problem":
        problem().save(path)
        return bw.Problem.load
    if kind == "policy":
        policy.save(path)
        return bw.load
    if kind == "plan":
        policy.plan().save(path)
        return bw.load_plan
    world = bw.environments.stochastic(
        bw.environments.random_instance(contexts=2, arms=2, dimension=2, gap=0.5, seed=1)
    )
    bw.simulate(world, {"all": bw.FixedPolicy()}, horizon=20, replications=2, rng=7).save(path)
    return bw.load_results


def of_version(path: Path, version: int) -> None:
    """Change the version in the mark of a file."""
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    header = json.loads(str(arrays.pop("header")))
    name, _, _ = header["format"].rpartition("-")
    np.savez(path, header=np.array(json.dumps({**header, "format": f"{name}-{version}"})), **arrays)


@pytest.mark.parametrize("kind", ["problem", "policy", "plan", "results"])
def test_files_of_another_version_are_refused_with_advice(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "file.npz"
    read = saved(kind, path)
    assert read(path) is not None
    of_version(path, 99)
    with pytest.raises(ValueError, match=NEWER):
        read(path)
    of_version(path, 0)
    with pytest.raises(ValueError, match=OLDER):
        read(path)


def test_lines_of_logs_of_another_version_are_refused_with_advice() -> None:
    row = Row(id="1", time=0.0, arm="red", propensity=0.5)
    line = line_of(row)
    assert record_of(line) == row
    with pytest.raises(ValueError, match=NEWER):
        record_of(line.replace(SCHEMA.encode(), b"bothworlds-log-99"))
    with pytest.raises(ValueError, match=r"not a line of a log with schema bothworlds-log-1: .*}'$"):
        record_of(b'{"schema": "somebody-else-3"}')


def test_tables_of_logs_of_another_version_are_refused_with_advice(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "log.parquet"
    bw.logs.write_parquet([Row(id="1", time=0.0, arm="red", propensity=0.5, reward=1.0)], path)
    assert len(list(bw.logs.read_parquet(path))) == 1
    table = parquet.read_table(path)
    newer = {key: value.replace(b"log-1", b"log-99") for key, value in table.schema.metadata.items()}
    parquet.write_table(table.replace_schema_metadata(newer), path)
    assert arrow is not None
    with pytest.raises(ValueError, match=NEWER):
        list(bw.logs.read_parquet(path))


def test_studies_have_a_format() -> None:
    study = bw.Study.from_dict(STUDY)
    assert to_toml(study).startswith("format = 1\n")
    assert bw.Study.from_dict({"format": 1, **STUDY}).settings == study.settings
    with pytest.raises(ValueError, match="format must be 1; got 2: it was written for a newer bothworlds"):
        bw.Study.from_dict({"format": 2, **STUDY})
    for wrong in (0, True, "1", None):
        with pytest.raises(ValueError, match="format must be 1"):
            bw.Study.from_dict({"format": wrong, **STUDY})


def test_marks_of_others_get_no_advice() -> None:
    assert (
        migration("bothworlds-plan-2", SCHEMA) == migration(None, SCHEMA) == migration("bothworlds-log-x", SCHEMA) == ""
    )
