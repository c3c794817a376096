"""A device by somebody who read docs/protocol.md and docs/openapi.json alone: it imports nothing of tacit.

It trains nothing: its update is a made-up one. It takes part where reports are in the clear and noise is independent.
"""

import hashlib
import http.client
import json
import math
import os
import struct
import time
import tomllib
import urllib.parse
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from tests.support.device.page_tokens import Blinded, blinded, token
from tests.support.protocol.openapi_documents import Documents, Refused, refuse_unless

OCTETS = "application/octet-stream"
BUDGET = 4.0  # zCDP, of everything
FINAL = {  # statuses of the table "When it goes wrong", without those that are asked again
    **{"tacit:malformed": 400, "tacit:version": 400, "tacit:token": 401, "tacit:credential": 401},
    **{"tacit:forbidden": 403, "tacit:not-found": 404, "tacit:method": 405, "tacit:other-report": 409},
    **{"tacit:late": 410, "tacit:length": 411, "tacit:too-large": 413, "tacit:encoding": 415},
    **{"tacit:range": 416, "tacit:refused": 422},
}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def root_of(leaves: list[bytes]) -> bytes:
    """Of a Merkle tree: RFC 9162, section 2.1."""
    if len(leaves) == 1:
        return leaves[0]
    half = 1 << (len(leaves) - 1).bit_length() - 1  # the largest power of two below
    return hashlib.sha256(b"\1" + root_of(leaves[:half]) + root_of(leaves[half:])).digest()


class PageDevice:
    """One device: `turn` is one look for something to do. Its record is a file."""

    def __init__(
        self, server: str, key: str, folder: Path, documents: Documents, *, population: str, code: str | None = None
    ) -> None:
        """key: of the operator. code: of this device's enrolment."""
        self.asked: list[tuple[str, str]] = []  # method and path
        self._code = code
        self._server, self._population, self._documents = server, population, documents
        folder.mkdir(exist_ok=True)
        self._file = folder / "record.json"
        self.record: dict[str, Any] = {"key": key, "log": [], "head": None, "took_part": []}
        if self._file.exists():
            self.record = json.loads(self._file.read_text("utf-8"))

    def turn(self) -> str:
        """What became of it, in a word and a reason. Raises: Refused for an answer that the page does not allow."""
        if "another log" in self.record:
            return "refused: the operator signed two logs"
        where = urllib.parse.urlsplit(self._server)
        kind = http.client.HTTPSConnection if where.scheme == "https" else http.client.HTTPConnection
        self._connection = kind(where.hostname or "", where.port, timeout=60)
        try:
            return self._session()
        finally:
            self._connection.close()

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        """Status and content of an answer."""
        self.asked.append((method, path))
        self._connection.request(method, path, body, {name.replace("_", "-"): said for name, said in headers.items()})
        answer = self._connection.getresponse()
        return answer.status, answer.read(1 << 24)

    def _posted(self, path: str, said: dict[str, Any]) -> tuple[int, bytes]:
        return self.ask("POST", path, json.dumps(said).encode(), Content_Type="application/json")

    def _fetched(self, path: str) -> bytes:
        status, content = self.ask("GET", path)
        refuse_unless(status == 200, f"{path}: {status}")
        return content

    def _signed(self, purpose: str, name: str, signed: dict[str, Any]) -> dict[str, Any]:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.record["key"]))
        text = f"tacit {purpose} v2\0".encode() + signed["document"].encode()
        try:
            key.verify(bytes.fromhex(signed["signature"]), text)
        except InvalidSignature:
            raise Refused(f"{name} is not signed by the pinned key") from None
        return self._documents.read(name, signed["document"])

    def _session(self) -> str:
        said = {"version": 2, "population": self._population, "versions": {"train": 1}, "token": None}
        status, content = self._posted("/v1/check-in", said)
        if status == 401 and self._code is not None:
            try:
                said["token"] = self._token(self._code)
            except Refused as refusal:
                return f"refused: {refusal}"
            if said["token"] is None:
                return "idle: it asked for tokens, and shows the first on another connection"
            status, content = self._posted("/v1/check-in", said)
        if status != 200:
            return f"unanswered: {self._documents.read('Problem', content.decode())['type']}"
        answer = self._documents.read("Answer", content.decode())
        if answer["answer"] == "come_back":
            return f"idle: until {answer['after_s']} to {answer['before_s']} s"
        path, bearer = f"/v1/reports/{answer['assignment']}", f"Bearer {answer['secret']}"
        try:
            task = self._accepted(answer["signed_task"])
        except Refused as refusal:
            self.ask("DELETE", path, Authorization=bearer)
            return f"refused: {refusal}"
        self.record["took_part"].append({name: task[name] for name in ("run", "plan", "round")} | {"at": time.time()})
        self._keep()
        body = self._report(task["asks"], answer["assignment"])
        while time.time() < task["deadline"]:
            headers = {"Authorization": bearer, "Content_Type": OCTETS, "X_Content_SHA256": sha256(body)}
            status, content = self.ask("POST", path, body, **headers)
            if status == 200:
                receipt = self._signed("receipt", "Receipt", self._documents.read("Signed", content.decode()))
                ours = (receipt["assignment"], receipt["sha256"]) == (answer["assignment"], sha256(body))
                return f"reported: round {task['round']}" if ours else "lost: the receipt is of another report"
            if self._is_final(status, content):
                return f"lost: {content.decode()}"
            time.sleep(1.0)
        return "lost: too late"

    def _is_final(self, status: int, content: bytes) -> bool:
        """Of an answer without a signature: a problem of the page's table, with its status."""
        try:
            problem = self._documents.read("Problem", content.decode())
        except (Refused, ValueError):
            return False
        return bool(problem["status"] == status == FINAL.get(problem["type"]))

    def _accepted(self, signed_task: dict[str, Any]) -> dict[str, Any]:
        """The task, once nothing but text could change the report. Raises: Refused."""
        task = self._signed("task", "RoundTask", signed_task)
        signed = self._documents.read("SignedPlan", self._fetched(f"/v1/plans/{task['plan']}").decode())
        refuse_unless(sha256(signed["document"].encode()) == task["plan"], "another plan came")
        self._check_log(f"plan {task['plan']}")
        plan = self._signed("plan", "Plan", signed)
        asks, privacy, recipe = task["asks"], plan["privacy"], tomllib.loads(plan["recipe"])
        refuse_unless((plan["run"], plan["kind"]) == (task["run"], asks["kind"]), "the task is of another run")
        refuse_unless(plan["population"] == self._population, "the plan is for another population")
        refuse_unless(task["round"] < privacy["rounds"], "the round is beyond the plan's")
        refuse_unless(task["opens"] - 600 < time.time() < task["deadline"], "its time is over, or a clock is wrong")
        refuse_unless(plan["attestation"] == {"devices": "none", "server": "none"}, "nothing is attested here")
        plain = plan["aggregation"]["kind"] == "plain" and asks["encoded"] is None and task["sealed"] is None
        refuse_unless(asks["kind"] == "train" and plain, "this device trains, in the clear")
        refuse_unless("clipping" in recipe or asks["clip_norm"] <= privacy["clip_norm"], "it clips above its plan")
        refuse_unless(("clipping" in recipe) is (asks["clip_estimate"] is not None), "a bit that is not the plan's")
        refuse_unless(asks["loss_bound"] == recipe.get("training_loss", {}).get("bound"), "another bound of losses")
        self._check_record(task, plan, recipe)
        model = self._fetched(task["content"]["path"])
        refuse_unless(sha256(model) == task["content"]["sha256"], "another model came")
        size = 8 + struct.unpack("<Q", model[:8])[0]
        refuse_unless(json.loads(model[8:size])["model"]["shape"] == [asks["parameters"]], "a model of another size")
        numbers = struct.unpack(f"<{asks['parameters']}f", model[size:])
        refuse_unless(all(map(math.isfinite, numbers)), "a model of no numbers")
        return task

    def _token(self, code: str) -> str | None:
        """One of the epoch, not to be shown again; None where they were asked for in this turn. Raises: Refused."""
        signed = self._documents.read("Signed", self._fetched("/v1/tokens/key").decode())
        key, name = self._signed("token-key", "TokenKey", signed), sha256(signed["document"].encode())
        entries = self._check_log(f"token-key {key['epoch']} {name}")
        of_epoch = [line for line in entries if line.startswith(f"token-key {key['epoch']} ")]
        refuse_unless(len(of_epoch) == 1, "the epoch has several keys of tokens")
        kept = self.record.setdefault("tokens", {"key": None})
        if kept["key"] != name:
            refuse_unless(key["epoch"] > kept.get("epoch", -1), "the epoch of its tokens is over")
            made = [blinded(key) for _ in range(key["batch"])]
            asked = [(each.prefix.hex(), f"{each.inverse:x}", each.sent) for each in made]
            kept = self.record["tokens"] = {"key": name, "epoch": key["epoch"], "asked": asked, "left": None}
            self._keep()
        if kept["left"] is None:
            sent = [each[2] for each in kept["asked"]]
            said = {"code": code, "epoch": key["epoch"], "blinded": sent, "evidence": None}
            status, content = self._posted("/v1/tokens", said)
            refuse_unless(status == 200, f"no tokens: {content.decode()}")
            signatures = self._documents.read("BlindSignatures", content.decode())["signatures"]
            made = [Blinded(bytes.fromhex(prefix), int(inverse, 16), sent) for prefix, inverse, sent in kept["asked"]]
            kept["left"] = [token(key, each, signature) for each, signature in zip(made, signatures, strict=True)]
            self._keep()
            return None
        refuse_unless(bool(kept["left"]), "all tokens of the epoch were shown")
        shown = str(kept["left"].pop())
        self._keep()  # before it is shown
        return shown

    def _check_log(self, line: str) -> list[str]:
        """The entries, once this line is among them and all is as the page asks. Raises: Refused."""
        shown = self._documents.read("ShownLog", self._fetched("/v1/log").decode())
        head, entries, kept = self._signed("head", "TreeHead", shown["head"]), shown["entries"], self.record["log"]
        root = root_of([hashlib.sha256(b"\0" + entry.encode()).digest() for entry in entries]).hex()
        refuse_unless((head["size"], head["root"]) == (len(entries), root), "the log is not its head's")
        refuse_unless(line in entries, f"no {line.split()[0]} like it is in the log")
        common = min(len(kept), len(entries))
        if kept[:common] != entries[:common]:
            self.record["another log"] = shown  # which convicts the operator, with its own
            self._keep()
            raise Refused("the log was written anew")
        if len(entries) > len(kept):
            self.record |= {"log": entries, "head": shown["head"]}
            self._keep()
        return list(entries)

    def _check_record(self, task: dict[str, Any], plan: dict[str, Any], recipe: dict[str, Any]) -> None:
        privacy, apart = plan["privacy"], plan["separation"]
        same = [each for each in self.record["took_part"] if each["run"] == task["run"]]
        refuse_unless(all(each["plan"] == task["plan"] for each in same), "the run has another plan")
        near = [each for each in same if task["round"] - each["round"] < (apart["rounds"] or 1)]
        refuse_unless(not near, "too soon")
        refuse_unless(apart["timer_seconds"] is None, "this device keeps no timer")
        refuse_unless(len(same) < (privacy["max_participations"] or math.inf), "it came often enough")
        refuse_unless("seed" not in recipe.get("run", {}), "everybody could draw its noise again")
        mechanism = recipe["privacy"]["mechanism"]["name"]
        refuse_unless(mechanism == privacy["mechanism"] == "independent", f"the price of {mechanism!r} is not known")
        refuse_unless(privacy["noise_multiplier"] > 0, "it has no noise")
        price = (len(same) + 1) / (2 * privacy["noise_multiplier"] ** 2)
        refuse_unless(price <= min(BUDGET, privacy["zcdp"] or 0.0), f"it would cost {price}")

    def _report(self, asks: dict[str, Any], assignment: str) -> bytes:
        size, said = asks["parameters"], {"assignment": assignment, "usable": "true"}
        update = [asks["clip_norm"] / 2 / math.sqrt(size)] * size
        if asks["clip_estimate"] is not None:
            said["short"] = "true" if math.hypot(*update) <= asks["clip_estimate"] else "false"
        if asks["loss_bound"] is not None:
            said["bounded_loss"] = str(min(1.0, asks["loss_bound"]) - asks["loss_bound"] / 2)
        tensor = {"dtype": "F32", "shape": [size], "data_offsets": [0, 4 * size]}
        header = json.dumps({"__metadata__": said, "update": tensor}).encode().ljust(512)
        return struct.pack("<Q", len(header)) + header + struct.pack(f"<{size}f", *update)

    def _keep(self) -> None:
        part = self._file.with_suffix(".part")
        with part.open("w", encoding="utf-8") as file:
            json.dump(self.record, file)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._file)
