"""Hostile settings of sealed sums: what a plan says of its decryptors, and a task of its round."""

import json
from typing import Any

from tests.support.vectors.case import Case
from tests.support.vectors.changes import CHECKS, OWN, SHAPE, Change, Said, made
from tests.support.vectors.sealed import DECRYPTORS, sealed_settings
from tests.support.vectors.turns import sealed_plan, sealed_task

from tacit.protocol.messages import Plan, RoundTask
from tacit.secure_aggregation.one_message.messages import OneMessageRound

SEALED, SETTINGS = "#a-sealed-report", "docs/secure-aggregation-protocols.md#settings-of-a-round"
MARGIN = 1 << 20  # of a contributor's noise
KEEPERS = [identity.public.hex() for identity, _ in DECRYPTORS[:3]]
BOXES = [box.public.hex() for _, box in DECRYPTORS[:3]]
STRANGER, STRANGE_BOX = DECRYPTORS[3][0].public.hex(), DECRYPTORS[3][1].public.hex()
NOBODYS = "01" + "00" * 31  # of small order, as an identity and as a key for boxes


def fields(settings: OneMessageRound, **said: str) -> Said:
    """Each field of a record in hexadecimal digits, in order. said: in place of some."""
    data, found = settings.to_bytes(), []
    while data:
        size = int.from_bytes(data[:4], "little")
        found.append(data[4 : 4 + size].hex())
        data = data[4 + size :]
    return {**dict(zip(OneMessageRound.__dataclass_fields__, found, strict=True)), "plan": "PLAN", **said}


def sealed_base(plan: Plan, task: RoundTask, settings: OneMessageRound, content: bytes, **said: str) -> Said:
    """A base with the settings of its round; said: of these."""
    documents = {"plan": json.loads(plan.to_json()), "task": json.loads(task.to_json())}
    return {**documents, "settings": fields(settings, **said), "content": content.hex()}


def bases(content: bytes) -> dict[str, Said]:
    """What a device follows as it is. content: the model."""
    plan = sealed_plan()
    task = sealed_task(plan)
    assert task.sealed is not None
    settings = OneMessageRound.from_bytes(bytes.fromhex(task.sealed))
    noised = json.loads(plan.to_json())
    noised["aggregation"] |= {"contributors": KEEPERS}
    with_noise = {"contributors": tuple(map(bytes.fromhex, KEEPERS)), "margin": MARGIN}
    at_all = sealed_settings(b"willow-4096", settings.dimension, settings.largest, round_index=0, **with_noise)
    return {
        "sealed": sealed_base(plan, task, settings, content),
        "noised": sealed_base(Plan.from_json(json.dumps(noised)), task, at_all, content, seed="SEED"),
    }


def of_plan(**aggregation: Any) -> dict[str, Any]:
    return {"set": {f"aggregation.{name}": value for name, value in aggregation.items()}}


def number(value: int, size: int = 8) -> str:
    return value.to_bytes(size, "little").hex()


OWNER, NO_PAIR = "the owner's policy", "each decryptor has one identity and one box"
OTHERS, OPENS = "it is not as its plan says", "the sum would be opened by others"
TRUSTED = "whoever may be corrupt would have to be honest"
SEALED_PLANS: tuple[Change, ...] = (
    ("opens the sum of one", OWNER, of_plan(threshold=1)),
    ("opens no sum of so few as its round", OTHERS, of_plan(threshold=3)),
    ("has nobody corrupt", OWNER, of_plan(corrupt=0)),
    ("has more corrupt decryptors than its round", OTHERS, of_plan(corrupt=2)),
    ("has all decryptors corrupt", OTHERS, of_plan(corrupt=3)),
    ("has no decryptors", OPENS, of_plan(keepers=[], boxes=[])),
    ("has one decryptor", OPENS, of_plan(keepers=KEEPERS[:1], boxes=BOXES[:1])),
    ("has a decryptor less than its round", OPENS, of_plan(keepers=KEEPERS[:2], boxes=BOXES[:2])),
    ("has a decryptor more", OPENS, of_plan(keepers=[*KEEPERS, STRANGER], boxes=[*BOXES, STRANGE_BOX])),
    ("has another decryptor", OPENS, of_plan(keepers=[*KEEPERS[:2], STRANGER])),
    ("has a decryptor twice", NO_PAIR, of_plan(keepers=[*KEEPERS[:2], KEEPERS[0]])),
    ("has its decryptors turned round", OTHERS, of_plan(keepers=KEEPERS[::-1])),
    ("has its boxes turned round", OTHERS, of_plan(boxes=BOXES[::-1])),
    ("has another box", OTHERS, of_plan(boxes=[*BOXES[:2], STRANGE_BOX])),
    ("has one box for all", NO_PAIR, of_plan(boxes=BOXES[:1] * 3)),
    ("has a box less", NO_PAIR, of_plan(boxes=BOXES[:2])),
    ("has a box more", NO_PAIR, of_plan(boxes=[*BOXES, STRANGE_BOX])),
    ("has no boxes", NO_PAIR, of_plan(boxes=[])),
    ("has a decryptor for whom anybody signs", SHAPE, of_plan(keepers=[*KEEPERS[:2], NOBODYS])),
    ("has a box that anybody opens", SHAPE, of_plan(boxes=[*BOXES[:2], "00" * 32])),
    ("has a decryptor of capital letters", SHAPE, of_plan(keepers=[*KEEPERS[:2], KEEPERS[2].upper()])),
    ("has a decryptor that is short", SHAPE, of_plan(keepers=[*KEEPERS[:2], KEEPERS[2][:-2]])),
    ("has 101 decryptors", SHAPE, of_plan(keepers=KEEPERS[:1] * 101, boxes=BOXES[:1] * 101)),
    ("has the noise of a stranger", "it is none of its decryptors", of_plan(contributors=[STRANGER])),
    ("has noise that its round has not", OTHERS, of_plan(contributors=KEEPERS)),
    ("relies on two whose noise nobody adds", TRUSTED, of_plan(honest=2)),
    ("relies on nobody", SHAPE, of_plan(honest=0)),
    ("is encoded", OTHERS, of_plan(kind="encoded")),
    ("is plain", OTHERS, of_plan(kind="plain")),
    ("is sealed, and its recipe encodes nothing", OWN, {
        "replace": ['\\n[aggregation]\\nkind = \\"secure\\"', ""]}),
)  # fmt: skip
SEALED_TASKS: tuple[Change, ...] = (
    ("is in the clear", OTHERS, {"set": {"sealed": None, "asks.encoded": None}}),
    ("seals nothing", OTHERS, {"set": {"sealed": None}}),
    ("seals what is not encoded", SHAPE, {"set": {"asks.encoded": None}}),
    ("has empty settings", SHAPE, {"set": {"sealed": ""}}),
    ("has settings of one digit", SHAPE, {"set": {"sealed": "a"}}),
    ("has settings of capital letters", SHAPE, {"set": {"sealed": "AB" * 40}}),
    ("has settings of no digits", SHAPE, {"set": {"sealed": "xy" * 40}}),
    ("has settings that are none", SHAPE, {"set": {"sealed": "ab" * 40}}),
    ("has settings of a field that does not end", SHAPE, {"set": {"sealed": "ffffffff"}}),
    ("has settings of ten thousand digits", SHAPE, {"set": {"sealed": "00" * 5000}}),
    ("opens sums of fewer than its plan", OTHERS, {"set": {"asks.encoded.threshold": 1}}),
    ("has longer reports than its round", "the round sums other vectors", {
        "set": {"asks.clip_estimate": 0.1, "asks.encoded.length": 6}}),
    ("encodes more finely than its round", "the round sums other vectors", {
        "replace": ['"scale":', '"scale":0.9,"was":']}),
    ("is of another round", OTHERS, {"set": {"round": 1}}),
)  # fmt: skip
PUBLISHED, LATTICE = "no such lattice is published", "no lattice opens such sums"
TWO, VECTORS = "a sum holds from two reports on", "it sums other vectors"


def of_settings(**said: str) -> dict[str, Any]:
    return {"set": said}


FIELDS = tuple(OneMessageRound.__dataclass_fields__)
SEALED_SETTINGS: tuple[Change, ...] = (
    *((f"are without {name}", SHAPE, {"remove": [name]}) for name in FIELDS),
    *((f"have nothing as {name}", SHAPE, of_settings(**{name: ""})) for name in FIELDS if name != "contributors"),
    *((f"have a byte more in {name}", SHAPE, {"behind": [name, "00"]}) for name in FIELDS),
    ("have a field more", SHAPE, of_settings(luck="07")),
    ("name lattice parameters of nobody", PUBLISHED, of_settings(parameters=b"willow-4097".hex())),
    ("name what is no text", PUBLISHED, of_settings(parameters="ff00fe")),
    ("name a word of the language", PUBLISHED, of_settings(parameters=b"constructor".hex())),
    ("have vectors of nothing", VECTORS, of_settings(dimension=number(0))),
    ("have a word less", VECTORS, of_settings(dimension=number(4))),
    ("have a word more", VECTORS, of_settings(dimension=number(6))),
    ("have vectors beyond all memory", LATTICE, of_settings(dimension=number(2**40))),
    ("have the longest vectors", LATTICE, of_settings(dimension="ff" * 8)),
    ("have no largest word", VECTORS, of_settings(largest=number(0))),
    ("have a largest word of 1", VECTORS, of_settings(largest=number(1))),
    ("have words beyond all bits", LATTICE, of_settings(largest=number(2**32))),
    ("have the largest words", LATTICE, of_settings(largest="ff" * 8)),
    ("open a sum of none", TWO, of_settings(report_goal=number(0))),
    ("open the report of one", TWO, of_settings(report_goal=number(1))),
    ("open nothing", TWO, of_settings(report_goal=number(11))),
    ("sum none at most", TWO, of_settings(most_reports=number(0))),
    ("sum one at most", TWO, of_settings(most_reports=number(1))),
    ("sum a trillion", LATTICE, of_settings(most_reports=number(2**40))),
    ("sum as many as there are numbers", LATTICE, of_settings(most_reports="ff" * 8)),
    ("have nobody corrupt", OTHERS, of_settings(corrupt=number(0, 4))),
    ("have all decryptors corrupt", OPENS, of_settings(corrupt=number(3, 4))),
    ("have as many corrupt as there are numbers", OPENS, of_settings(corrupt="ff" * 4)),
    ("have another decryptor", OPENS, of_settings(decryptors="".join([*KEEPERS[:2], STRANGER]))),
    ("have a decryptor less", OPENS, of_settings(decryptors="".join(KEEPERS[:2]), boxes="".join(BOXES[:2]))),
    ("have a decryptor more", OPENS, of_settings(
        decryptors="".join([*KEEPERS, STRANGER]), boxes="".join([*BOXES, STRANGE_BOX]))),
    ("have a decryptor twice", NO_PAIR, of_settings(decryptors="".join([*KEEPERS[:2], KEEPERS[0]]))),
    ("have a decryptor for each other's box", OTHERS, of_settings(decryptors="".join(KEEPERS[::-1]))),
    ("have another box", OTHERS, of_settings(boxes="".join([*BOXES[:2], STRANGE_BOX]))),
    ("have a box twice", NO_PAIR, of_settings(boxes="".join([*BOXES[:2], BOXES[0]]))),
    ("have a box less", NO_PAIR, of_settings(boxes="".join(BOXES[:2]))),
    ("have a box that anybody opens", SHAPE, of_settings(boxes="".join([*BOXES[:2], "00" * 32]))),
    ("have a decryptor for whom anybody signs", SHAPE, of_settings(decryptors="".join([*KEEPERS[:2], NOBODYS]))),
    ("have a server with whom anybody agrees", SHAPE, of_settings(server="00" * 32)),
    ("are of another plan", OTHERS, of_settings(plan="ab" * 32)),
    ("are of another round", OTHERS, of_settings(round_index=number(1))),
    ("are of a round beyond all numbers", OTHERS, of_settings(round_index="ff" * 8)),
    ("have a margin for nobody", "nobody adds noise", of_settings(margin=number(1))),
    ("have noise without a margin", "nothing holds the noise", of_settings(contributors=STRANGER)),
    ("have the same noise twice", "each contributes once", of_settings(contributors=STRANGER * 2, margin=number(1))),
    ("have noise beyond all bits", LATTICE, of_settings(contributors=STRANGER, margin="ff" * 8)),
)  # fmt: skip
NOISED_SETTINGS: tuple[Change, ...] = (
    ("lack the noise of one", OTHERS, of_settings(contributors="".join(KEEPERS[:2]))),
    ("lack all noise", OTHERS, of_settings(contributors="", margin=number(0))),
    ("have a stranger's noise for one's", OTHERS, of_settings(contributors="".join([*KEEPERS[:2], STRANGER]))),
    ("leave noise no room", "nothing holds the noise", of_settings(margin=number(0))),
    ("have a seed of their own", "noise may be added to another question", of_settings(seed="ab" * 32)),
)
NOISED_TASKS: tuple[Change, ...] = (
    ("is another attempt than its seed's", "noise may be added to another question", {"set": {"task": "ab" * 16}}),
    ("rotates otherwise than its seed", "noise may be added to another question", {
        "set": {"asks.encoded.signs": "ab" * 32}}),
)  # fmt: skip
NOISED_PLANS: tuple[Change, ...] = (
    ("has a contributor twice", "each contributes once", of_plan(contributors=[*KEEPERS[:2], KEEPERS[0]])),
    (
        "has a stranger among its contributors",
        "it is none of its decryptors",
        of_plan(contributors=[*KEEPERS, STRANGER]),
    ),
    ("relies on all three", TRUSTED, of_plan(honest=3)),
    ("relies on one who may be corrupt", TRUSTED, of_plan(contributors=KEEPERS[:1])),
)

COUNTED_SETTINGS: tuple[Change, ...] = (
    ("have a cell less", VECTORS, of_settings(dimension=number(8))),
    ("have a cell more", VECTORS, of_settings(dimension=number(10))),
    ("let a device count twice", VECTORS, of_settings(largest=number(2))),
)


def cases() -> list[Case]:
    """Of the bases here."""
    return [
        *made("sealed", "plan", SEALED, SEALED_PLANS),
        *made("sealed", "task", SEALED, SEALED_TASKS),
        *made("sealed", "settings", SETTINGS, SEALED_SETTINGS),
        *made("noised", "plan", SEALED, NOISED_PLANS),
        *made("noised", "task", SEALED, NOISED_TASKS),
        *made("noised", "settings", SEALED, NOISED_SETTINGS),
        *made("sealed count", "settings", CHECKS, COUNTED_SETTINGS),
    ]
