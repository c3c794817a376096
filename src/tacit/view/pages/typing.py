"""A keyboard as on a phone, with one model or two beside each other. Nothing that is typed is logged or kept."""

from starlette.requests import Request

from tacit.errors import InputError
from tacit.parsing import parsed_json
from tacit.view.keyboards import LONGEST
from tacit.view.shown import Shown, View

KEYS = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
MOST = 2  # models side by side
LARGEST = 8_000  # bytes of a request


def page(view: View, request: Request) -> Shown:
    """`?run=` one place, or two: with what."""
    places = list(dict.fromkeys(request.query_params.getlist("run")))[:MOST]
    names = [(place, view.folders.folder(place).name) for place in places]
    return Shown(
        template="typing",
        title="Typing",
        values={"chosen": names, "models": view.keyboards.models(), "keys": KEYS, "longest": LONGEST},
        record={"runs": places, "models": view.keyboards.models()},
    )


def suggest(view: View, request: Request) -> Shown:
    """POST {"runs": [place, ...], "text": "..."}: what each model offers after the text. It is answered and forgotten:
    in the body, so that it stands in no address. Raises: InputError.
    """
    body: bytes = request.state.body
    if len(body) > LARGEST:
        raise InputError(f"a text of {len(body):,} bytes is too long; give at most {LONGEST} characters.")
    try:
        asked = parsed_json(body)
        runs, text = asked["runs"], asked["text"]
        if not (isinstance(text, str) and isinstance(runs, list) and all(isinstance(each, str) for each in runs)):
            raise TypeError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InputError('give {"runs": [PLACE], "text": TEXT}.') from None
    offered = {
        place: view.keyboards.suggested(place, text, simulation=view.simulation).to_record() for place in runs[:MOST]
    }
    return Shown(template="message", title="", values={"message": ""}, record={"offered": offered})
