"""A model to type with: its words decoded by a touch model, as `tacit keyboard` puts it under somebody's fingers."""

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from tacit.errors import InputError, of_type
from tacit.files import PathLike
from tacit.progress import DECODER, Progress, StageBegan, StageEnded, silent

if TYPE_CHECKING:  # JAX comes with the first, numba with the second
    from tacit.keyboard.decoder import Decoder
    from tacit.keyboard.live_keyboard import LiveKeyboard
    from tacit.keyboard.model_folder import TrainedModel
    from tacit.keyboard.phone_model import PhoneModel

QWERTY = "qwerty"
STAGE = "getting the keyboard ready"


def live_keyboard(
    model: "PhoneModel | TrainedModel | PathLike",
    *,
    layout: str = QWERTY,
    threshold: float | None = None,
    learns: bool = True,
    wait: bool = True,
    progress: Progress = silent,
) -> "LiveKeyboard":
    """A keyboard with nothing typed on it.

    model: as `tacit.suggest` takes it. layout: of the keys, by its name in `keyboard.touch.LAYOUTS`. threshold: the
    probability from which on a phrase is offered (left out: 0.25). learns: mix the words and pairs that were typed in,
    where that helped before. wait: for the decoder, which is compiled at the
    first start; else it comes by itself, in another thread, and with it corrections (`LiveKeyboard.ready`). progress:
    gets events in this thread. Raises: InputError where there is no such model or layout, or most of the model's words
    cannot be typed on it.
    """
    from tacit.jobs.phone_models import phone_model
    from tacit.keyboard.decoder import Decoder
    from tacit.keyboard.lexicon import Lexicon
    from tacit.keyboard.live_keyboard import THRESHOLD, LiveKeyboard
    from tacit.keyboard.touch import LAYOUTS, TouchModel

    of_type("layout", layout, str)
    of_type("learns", learns, bool)
    of_type("wait", wait, bool)
    if layout not in LAYOUTS:
        raise InputError(f"the layout {layout!r} is unknown; it is one of {', '.join(LAYOUTS)}.")
    if threshold is not None:
        of_type("threshold", threshold, int, float)
        if not 0 < threshold <= 1:
            raise InputError(f"threshold={threshold:g} is no probability above 0; 0.25 is usual.")
    phone = phone_model("model", model, progress=progress)
    progress(StageBegan(STAGE, opening=DECODER if wait else ""))
    # Of a keyboard with real keys, which are hit in the middle.
    touch = TouchModel(layout=LAYOUTS[layout], offset_x=0.0, offset_y=0.0)
    decoder = Decoder(Lexicon.from_words(phone.vocabulary.words, LAYOUTS[layout]), touch)
    alone = ThreadPoolExecutor(1, thread_name_prefix="decoder")
    coming = alone.submit(_prepared, decoder)
    alone.shutdown(wait=wait)
    keyboard = LiveKeyboard(
        phone,
        coming.result() if wait else coming,
        threshold=THRESHOLD if threshold is None else threshold,
        learns=learns,
    )
    progress(StageEnded(STAGE))
    return keyboard


def _prepared(decoder: "Decoder") -> "Decoder":
    decoder.prepare()
    return decoder
