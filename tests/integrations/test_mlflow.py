"""A log for MLflow, with its own client and, in place of a server, the store of files that the client brings."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tacit.errors import InputError
from tacit.integrations import Logs, MLflow
from tacit.integrations import mlflow as module
from tacit.progress import Advanced, Evaluated, StageBegan, StageEnded


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The library. It is 73 MB, so that the tests of every change do without."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    yield pytest.importorskip("mlflow", reason="needs the extra mlflow")


def store(tmp_path: Path) -> str:
    return (tmp_path / "store").as_uri()


def test_numbers_and_parameters_arrive(client: Any, tmp_path: Path) -> None:
    with MLflow(store(tmp_path), run="first", parameters={"report goal": 100}) as log:
        log(Advanced("training", 1, {"zcdp": 0.125, "training_loss": 3.0}))
        log(Advanced("training", 2, {"zcdp": 0.25}))
        log(Evaluated(2, "validation", {"top1_accuracy": 0.2}))
    server = client.MlflowClient(tracking_uri=store(tmp_path))
    run = server.get_run(log.run_id)
    assert run.info.status == "FINISHED" and run.info.run_name == "first"
    assert run.data.params == {"report goal": "100"} and set(run.data.metrics) == {"training/zcdp"}
    history = server.get_metric_history(log.run_id, "training/zcdp")
    assert [(each.step, each.value) for each in history] == [(1, 0.125), (2, 0.25)]
    assert len({each.timestamp for each in history}) == 1  # no time of a round


def test_a_run_goes_on_and_may_fail(client: Any, tmp_path: Path) -> None:
    first = MLflow(store(tmp_path))
    first.close()
    server = client.MlflowClient(tracking_uri=store(tmp_path))
    with pytest.raises(RuntimeError), MLflow(store(tmp_path), run_id=first.run_id, exact=True) as again:
        assert server.get_run(first.run_id).info.status == "RUNNING"
        again(Evaluated(2, "validation", {"top1_accuracy": 0.2}))
        raise RuntimeError
    assert again.run_id == first.run_id
    run = server.get_run(first.run_id)
    assert run.info.status == "FAILED" and run.data.metrics == {"validation/top1_accuracy": 0.2}


def test_numbers_are_sent_together_and_none_is_lost(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 4)
    log = MLflow(store(tmp_path))
    server = client.MlflowClient(tracking_uri=store(tmp_path))
    for step in range(1, 4):
        log(Advanced("training", step, {"zcdp": 0.5}))
    assert server.get_metric_history(log.run_id, "training/zcdp") == []
    for step in range(4, 11):
        log(Advanced("training", step, {"zcdp": 0.5}))
    log(StageEnded("training"))
    steps = [each.step for each in server.get_metric_history(log.run_id, "training/zcdp")]
    assert steps == list(range(1, 11))
    log.close()


@pytest.mark.parametrize("uri", ["http://127.0.0.1:9", "sqlite:///there.db", "gopher://x"])
@pytest.mark.usefixtures("client")
def test_a_wrong_address_is_said_at_once(uri: str) -> None:
    with pytest.raises(InputError, match=r"MLflow at .* did not take it"), Logs([f"mlflow:{uri}"], run="mine") as logs:
        logs(StageBegan("training", 2))


@pytest.mark.usefixtures("client")
def test_a_run_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did not take it"):
        MLflow(store(tmp_path), run_id="nobody")


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr("tacit.extras.import_module", missing)
    with pytest.raises(InputError, match=r"pip install 'tacit\[mlflow\]'"):
        MLflow("http://127.0.0.1:9")
