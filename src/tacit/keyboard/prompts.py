"""Public beginnings of sentences, the same for everybody: what a report asks a model to go on with."""

from collections.abc import Mapping

from tacit.text.vocabulary import OOV, Vocabulary

PROMPTS: Mapping[str, tuple[str, ...]] = {
    "English": ("I", "I will see", "thank you for", "what do you", "it was a", "let me"),
    "Spanish": ("yo", "no me", "gracias por", "qué te", "la verdad es", "me gusta"),
    "documentation": ("Return", "Return the", "If the", "the name of", "This is", "Raise an"),
}


def prompts_for(vocabulary: Vocabulary) -> tuple[str, ...]:
    """Those of PROMPTS of which the vocabulary knows the largest share of words; of equal ones the first."""

    def known(prompts: tuple[str, ...]) -> float:
        words = [word for each in prompts for word in vocabulary.pieces(each)]
        return sum(vocabulary.id_of(word) != OOV for word in words) / len(words)

    return max(PROMPTS.values(), key=known)
