"""What a run of words warns of before anybody is asked: what makes it a simulation, and words that it cannot spell."""

from tacit.discovery.settings import DiscoverySettings
from tacit.progress import Warned
from tacit.text.vocabulary import Vocabulary

MANY_UNSPELLED = 0.02  # of the vocabulary's words: none of 2,000 English ones, 19% of 5,000 Spanish ones
NAMED = 40  # characters at most; more is another script, and wants an alphabet of its own


def discovery_warnings(settings: DiscoverySettings, clients: int, known: Vocabulary) -> list[Warned]:
    """Warnings for a run over so many clients whose devices have the vocabulary."""
    warnings = []
    if settings.resample_users:
        message = (
            f"SIMULATED POPULATION: {settings.users:,} users with the texts of {clients:,} clients, drawn with "
            "replacement; nothing is promised to those clients."
        )
        warnings.append(Warned("simulated-population", message))
    if settings.seed is not None:
        message = f"FIXED SEED {settings.seed}: a simulation; its randomness protects nobody."
        warnings.append(Warned("fixed-seed", message))
    unspelled = sum(not settings.alphabet.spells(word) for word in known.words) / len(known.words)
    if unspelled > MANY_UNSPELLED:
        lacked = settings.alphabet.lacked_by(known.words)
        way = f"--more-characters {lacked}" if len(lacked) <= NAMED else "--alphabet with those of that script"
        message = (
            f"{unspelled:.0%} of the vocabulary's words have characters that the alphabet lacks, and no new word that "
            f"has one will be found; give {way}."
        )
        warnings.append(Warned("narrow-alphabet", message))
    return warnings
