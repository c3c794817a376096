"""Attestation: what a made-up one shows and checks on either end, and that nothing attests by default."""

import hmac
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.device.operator import SEED, Operator, a_plan, once
from tests.support.server.documents import a_plan as a_simple_plan
from tests.support.server.served import KEY, served
from tests.support.server.talking import CODE, OTHER, SAID, a_record, talking

from tacit.data import Cache
from tacit.device.tokens import checked_in
from tacit.errors import InputError, ServerError
from tacit.protocol.attestation import NOTHING, Attestation
from tacit.protocol.messages import Attested, TokenRequest
from tacit.server.store.tokens import enrol


@dataclass(frozen=True)
class Sealed:
    """A vendor of a test: whoever has its secret is what it should be."""

    secret: bytes
    name: str = "sealed-in-a-test"

    def evidence(self, bound_to: bytes) -> bytes:
        return hmac.digest(self.secret, bound_to, "sha256")

    def check(self, evidence: bytes | None, bound_to: bytes) -> None:
        if evidence is None or not hmac.compare_digest(evidence, self.evidence(bound_to)):
            raise InputError("this device is not sealed; use one that is.")


RIGHT, WRONG = Sealed(b"right"), Sealed(b"wrong")


def test_nothing_has_no_evidence_and_takes_none() -> None:
    assert NOTHING.evidence(bytes(32)) is None
    NOTHING.check(None, bytes(32))
    with pytest.raises(InputError, match="none is asked for here"):
        NOTHING.check(b"trust me", bytes(32))
    assert KEY.plan(a_simple_plan().to_json()).evidence is None
    assert a_simple_plan().attestation == Attested(devices=NOTHING.name, server=NOTHING.name)


@pytest.mark.parametrize(("own", "gets"), [(RIGHT, True), (WRONG, False), (NOTHING, False)])
def test_a_device_that_is_not_attested_gets_no_tokens(own: Attestation, gets: bool, tmp_path: Path) -> None:
    worker = served(tmp_path, enrols=True, devices=RIGHT, goal=30, most=30)
    enrol(worker.store, [CODE])
    issuer = worker.services.issuer
    assert issuer is not None
    with talking(worker) as (connection, seen), a_record(tmp_path) as record:
        try:
            asked = [connection.held(checked_in(SAID, record, CODE, draw=os.urandom, attestation=own)) for _ in "ab"]
            assert gets and asked[0] is None and asked[1].answer == "assignment"
        except ServerError as error:
            assert not gets and "not sealed" in str(error)
        sent = [TokenRequest.model_validate_json(each.content) for each in seen if each.url.path == "/v1/tokens"]
    assert len(sent) == 1
    if gets:  # what was shown is for this request, and for no other
        other = sent[0].model_copy(update={"blinded": sent[0].blinded[::-1]})
        assert issuer.sign(other) is None, "this code has its tokens"
        enrol(worker.store, [OTHER])
        with pytest.raises(InputError, match="not sealed"):
            issuer.sign(sent[0].model_copy(update={"code": OTHER}))
        assert issuer.sign(sent[0]) == issuer.sign(sent[0]), "the same again for the same"


@pytest.mark.parametrize(
    ("named", "beside", "servers", "why"),
    [
        (RIGHT.name, RIGHT, RIGHT, None),
        (RIGHT.name, WRONG, RIGHT, "is of a server that is not attested: this device is not sealed"),
        (RIGHT.name, NOTHING, RIGHT, "is of a server that is not attested"),
        (RIGHT.name, RIGHT, NOTHING, "'sealed-in-a-test' attests the server, and here 'none' would have to"),
        ("none", NOTHING, RIGHT, "'none' attests the server, and here 'sealed-in-a-test' would have to"),
        ("none", RIGHT, NOTHING, "none is asked for here"),
    ],
)
def test_a_device_takes_no_plan_of_a_server_that_is_not_attested(
    named: str,
    beside: Attestation,
    servers: Attestation,
    why: str | None,
    operator: Operator,
    words: str,
    cache: Cache,
    tmp_path: Path,
) -> None:
    plan = a_plan(words, attestation=Attested(devices="none", server=named))
    operator.give(operator.key.plan(plan.to_json(), server=beside), operator.key.signed(operator.task(plan, 0)))
    turn = once(operator, cache.path, tmp_path, draw=lambda size: SEED[:size], servers=servers)
    assert turn.what == ("reported" if why is None else "refused"), turn.says
    assert why is None or why in turn.says
    assert len(operator.received) == (why is None)
