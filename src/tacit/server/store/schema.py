"""The tables of a server's store; `migrations/` has the steps by which older ones become these.

    runs         one row a run: its signed plan, and the lease of its coordinator
    rounds       one row an attempt at a round: its state, its signed task, how many devices it has, its sum's digest
    assignments  one row a device that was given a task: an id and a secret drawn for it alone, no name of a device.
                 They go when their round has ended.
    partials     one row a worker's sum of a round that was flushed last
    tokens       hashes of tokens that were redeemed
    enrolments   hashes of the codes of enrolled devices
    batches      which of them asked for the tokens of an epoch; what it redeems, nothing tells
    workers      when each worker was last seen
    paces        how many devices of a population it sent away, and how many there are in its eyes
    log          the transparency log: one row an entry, with the signed head of the log that ends with it

Times are in Unix seconds of the caller's clock, digests and ids in lower-case hex.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

ID, DIGEST, NAME, STATE = String(32), String(64), String(128), String(16)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

runs = Table(
    "runs",
    metadata,
    Column("name", NAME, primary_key=True),
    Column("population", NAME, nullable=False),
    Column("kind", STATE, nullable=False),
    Column("plan", Text, nullable=False),  # the signed plan, as it is sent
    Column("plan_digest", DIGEST, nullable=False, unique=True),
    Column("state", STATE, nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("lease_owner", ID, nullable=True),
    Column("lease_until", Float, nullable=True),
    Column("term", BigInteger, nullable=False),  # grows by one with each new holder of the lease
)

rounds = Table(
    "rounds",
    metadata,
    Column("task", ID, primary_key=True),
    Column("run", NAME, ForeignKey("runs.name"), nullable=False),
    Column("round", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("state", STATE, nullable=False),
    Column("signed_task", Text, nullable=False),  # as it is sent
    Column("model_digest", DIGEST, nullable=False),
    Column("goal", Integer, nullable=False),  # reports that it takes
    Column("least", Integer, nullable=False),  # below which nothing is summed up
    Column("most", Integer, nullable=False),  # devices that are given the task
    Column("opened", Float, nullable=False),
    Column("closes_selecting", Float, nullable=False),
    Column("deadline", Float, nullable=False),
    Column("assigned", Integer, nullable=False),  # devices that were given the task, ever
    Column("received", Integer, nullable=False),  # reports in workers' memories
    Column("counted", Integer, nullable=False),  # reports in flushed partial sums
    Column("lost", Integer, nullable=False),  # reports that came and went with a worker
    Column("total_digest", DIGEST, nullable=True),  # of the blob with the sum; set once
    Column("reports", Integer, nullable=True),  # in the sum
    Column("short_updates", Integer, nullable=True),
    Column("losses", Float, nullable=True),
    Column("ended", Float, nullable=True),
    Column("why", Text, nullable=True),  # it was abandoned
    UniqueConstraint("run", "round", "attempt"),
    Index(None, "state"),
)

assignments = Table(
    "assignments",
    metadata,
    Column("id", ID, primary_key=True),
    Column("task", ID, ForeignKey("rounds.task"), nullable=False),
    Column("secret_hash", DIGEST, nullable=False),
    Column("state", STATE, nullable=False),
    Column("worker", ID, nullable=True),
    Column("body_digest", DIGEST, nullable=True),
    Index(None, "task"),
    sqlite_with_rowid=False,  # in the order of ids, which are drawn, and not in that of arrival
)

partials = Table(
    "partials",
    metadata,
    Column("task", ID, ForeignKey("rounds.task"), primary_key=True),
    Column("worker", ID, primary_key=True),
    Column("generation", Integer, nullable=False),
    Column("blob", Text, nullable=False),
    Column("digest", DIGEST, nullable=False),
    Column("reports", Integer, nullable=False),
    Column("short_updates", Integer, nullable=True),
    Column("losses", Float, nullable=True),
)

tokens = Table(
    "tokens",
    metadata,
    Column("hash", DIGEST, primary_key=True),
    Column("epoch", Integer, nullable=False),
    sqlite_with_rowid=False,
)

workers = Table(
    "workers",
    metadata,
    Column("id", ID, primary_key=True),
    Column("seen", Float, nullable=False),
)

paces = Table(
    "paces",
    metadata,
    Column("worker", ID, primary_key=True),
    Column("population", NAME, primary_key=True),
    Column("away", Float, nullable=False),
    Column("unseen", Float, nullable=False),
    Column("devices", Float, nullable=False),
    Column("at", Float, nullable=False),
)

enrolments = Table(
    "enrolments",
    metadata,
    Column("hash", DIGEST, primary_key=True),
)

batches = Table(
    "batches",
    metadata,
    Column("hash", DIGEST, primary_key=True),
    Column("epoch", Integer, primary_key=True, autoincrement=False),
    Column("digest", DIGEST, nullable=False),  # of the request
)

log = Table(
    "log",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),  # 0, 1, 2, ...
    Column("entry", NAME, nullable=False, unique=True),
    Column("leaf", DIGEST, nullable=False, unique=True),
    Column("head", Text, nullable=False),  # as it is sent
)
