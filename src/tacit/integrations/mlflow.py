"""MLflow: numbers and settings of a run, sent to a tracking server."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

from tacit.errors import InputError
from tacit.extras import of_extra
from tacit.integrations.log import ProgressLog
from tacit.integrations.published import PublishedNumber

PATIENCE = 5.0  # seconds between two messages: a round may take milliseconds, and waits for each
AT_ONCE = 500  # numbers in a message; a server takes 1,000
PARAMETERS_AT_ONCE = 100  # as many as a server takes
RETRIES = "MLFLOW_HTTP_REQUEST_MAX_RETRIES"


class MLflow(ProgressLog):
    """Sends to a run on a tracking server, a new one or the one called `run_id`.

    Raises: InputError where the client (extra `mlflow`) is not installed, or the server does not take what is sent.
    That stops a job after its last committed step, and calling it again goes on.
    """

    name: ClassVar[str] = "mlflow"
    takes: ClassVar[str] = "URI"

    def __init__(
        self,
        tracking_uri: str | None = None,
        *,
        experiment: str = "tacit",
        run: str | None = None,
        run_id: str | None = None,
        parameters: Mapping[str, object] | None = None,
        exact: bool = False,
    ) -> None:
        """tracking_uri: None is MLFLOW_TRACKING_URI of the environment, as MLflow reads it.

        experiment: made where there is none. run: what a new run is called. run_id: go on with this one, after
        `tacit.resume` say. parameters: sent as they are, once. exact: see `Log`; leave it out where others can read.
        """
        super().__init__(exact=exact)
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # it would tell its makers who uses it
        mlflow = of_extra("mlflow")
        self._entities, self._refusal = mlflow.entities, mlflow.exceptions.MlflowException
        self._where = tracking_uri or mlflow.get_tracking_uri()
        self._waiting: list[Any] = []
        self._sent = time.monotonic()
        with self._refused(), _once():
            self._client = mlflow.MlflowClient(tracking_uri=tracking_uri)
            self.run_id = run_id if run_id is not None else self._new(experiment, run)
        known = [self._entities.Param(name, str(value)) for name, value in (parameters or {}).items()]
        with self._refused():
            for begin in range(0, len(known), PARAMETERS_AT_ONCE):
                self._client.log_batch(self.run_id, params=known[begin : begin + PARAMETERS_AT_ONCE])
            if run_id is not None:
                self._client.update_run(self.run_id, status="RUNNING")

    @classmethod
    def open(cls, place: str, *, exact: bool, run: str) -> Self:
        """A new run called `run` on the server at `place`, in the experiment `tacit`."""
        return cls(place, run=run, exact=exact)

    def _new(self, experiment: str, run: str | None) -> str:
        found = self._client.get_experiment_by_name(experiment)
        number = self._client.create_experiment(experiment) if found is None else found.experiment_id
        return str(self._client.create_run(number, run_name=run).info.run_id)

    def write(self, numbers: Sequence[PublishedNumber], when: float) -> None:
        """Sent together with others, every few seconds."""
        milliseconds = int(when * 1000)
        self._waiting += [self._entities.Metric(each.name, each.value, milliseconds, each.step) for each in numbers]
        if len(self._waiting) >= AT_ONCE or time.monotonic() - self._sent > PATIENCE:
            self.flush()

    def flush(self) -> None:
        """Send what waits."""
        with self._refused():
            while self._waiting:
                self._client.log_batch(self.run_id, metrics=self._waiting[:AT_ONCE])
                del self._waiting[:AT_ONCE]
        self._sent = time.monotonic()

    def close(self, *, failed: bool = False) -> None:
        """Send what waits, and say how the run ended."""
        self.flush()
        with self._refused():
            self._client.set_terminated(self.run_id, "FAILED" if failed else "FINISHED")

    @contextmanager
    def _refused(self) -> Iterator[None]:
        try:
            yield
        except self._refusal as error:
            said = str(error).strip().partition("\n")[0]
            raise InputError(
                f"MLflow at {self._where} did not take it ({said:.160}); check the address and what it takes, and "
                "call the same again."
            ) from error


@contextmanager
def _once() -> Iterator[None]:
    """A first message is not tried again: a wrong address is said at once, and not after four minutes."""
    if RETRIES in os.environ:
        yield
        return
    os.environ[RETRIES] = "1"
    try:
        yield
    finally:
        del os.environ[RETRIES]
