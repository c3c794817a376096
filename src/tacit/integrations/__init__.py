"""What a job says on its way, told to tools that a team has already; unless asked, only what may be published."""

from tacit.integrations.log import ProgressLog
from tacit.integrations.mlflow import MLflow
from tacit.integrations.named import LOGS, Logs
from tacit.integrations.tensorboard import TensorBoard

__all__ = ["LOGS", "Logs", "MLflow", "ProgressLog", "TensorBoard"]
