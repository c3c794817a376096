"""The sentences of a statement about decryptors that add the noise: whom the guarantee trusts."""


def trusted_decryptors(decryptors: int, honest: int, *, noise: str, simulated: bool, has: str = "The model") -> str:
    """Whom a guarantee trusts whose noise so many decryptors add, of whom so many are honest. has: the noise of all."""
    added = (
        f"each add the whole noise of {noise} to every sum before anybody opens it, and one decryptor's noise is what "
        "is accounted. It holds against the server and all decryptors but one, if one decryptor is honest and no sum "
        "is opened without it"
        if honest == 1
        else f"each add 1/{honest} of the variance of the noise of {noise} to every sum before anybody opens it, and "
        f"the noise of {honest:,} of them is what is accounted. It holds against the server and all other decryptors, "
        f"if at least {honest:,} of {decryptors:,} decryptors are honest and no sum is opened without them"
    )
    who = (
        "whoever simulates a run is all of them, and could know everything"
        if simulated
        else "that the decryptors belong to different people, and how many are honest, this software cannot know"
    )
    return (
        f"A central guarantee that needs no trusted server: {decryptors:,} decryptors {added}; {who}. {has} has "
        f"the noise of all, {(decryptors / honest) ** 0.5:.3g} times the standard deviation that is accounted."
    )


def whose_noise(honest: int) -> str:
    """Of how many decryptors the noise is that is accounted; "of N decryptors" follows."""
    return "of each" if honest == 1 else f"of any {honest:,} together"
