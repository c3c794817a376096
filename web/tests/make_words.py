"""Texts and what Python cuts them into, for `words.test.ts`: python web/tests/make_words.py."""

import json
import random
from pathlib import Path

from tacit.text.words import Writing, pieces

FIXTURE = Path(__file__).parent / "fixtures" / "words.json"
TEXTS = (
    "See you on the train. the train is late again! ok",
    "I met Dr. Who at 10:30, e.g. this; J. Smith said 3.14 m² isn't CO₂... so it goes.",
    "می‌خواهم بروم؟ بله",
    "paral·lel, צה״ל, O‘zbek, don’t",
    "घर। 3.14 m² at 10:30",
    "İSTANBUL ISPARTA Ì ΑΣ",
    "ok 👍🏽 ❤ 👩‍👩‍👧 🇩🇪 1️⃣ © ™ ‼️",
    "http://a.b/c?d <url> www.x.y, end.Then foo_bar 東京タワー",
)
CHARACTERS = (
    *"aAbİIıσΣ éé19",
    *".!?…,;:'’\"()-_·\n\r\v\x85\u2028",
    *"\u200c\u200d\u00ad\ufe0e\ufe0f\u20e3\u0301",
    *"אב״ میघर। 東タ",
    *"👍🏽❤👩🇩🇪©#1",
    "Dr",
    "http://",
    "<url>",
)
WRITINGS = (Writing(), Writing(lowercase=True), Writing(emoji=True), Writing(lowercase=True, language="tr"))


def main() -> None:
    """Every text by every way of writing."""
    draw = random.Random(37)
    made = ["".join(draw.choices(CHARACTERS, k=draw.randint(1, 16))) for _ in range(300)]
    cases = [
        {"text": text, "writing": vars(writing), "pieces": pieces(text, writing)}
        for text in (*TEXTS, *made)
        for writing in WRITINGS
    ]
    FIXTURE.write_text(json.dumps(cases, separators=(",", ":")) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
