"""What crosses the wire of tokens, by which an enrolled device takes part without saying which it is."""

from typing import Annotated, TypeAlias

from pydantic import Field, StringConstraints

from tacit.protocol.fields import Count, Document, Evidence, Signature, Time

Blind: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{512}$")]  # a number below an RSA modulus


class TokenKey(Document):
    """By which the tokens of an epoch are signed, blindly; everybody has the same."""

    epoch: Count
    opens: Time
    ends: Time
    batch: Annotated[int, Field(ge=1, le=100)]  # tokens that a device asks for, no more and no fewer
    modulus: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{512}$")]
    exponent: Annotated[int, Field(ge=65537, lt=1 << 32)]


class SignedTokenKey(Document):
    """It as a device receives it."""

    key: TokenKey
    signature: Signature  # by the operator, purpose "token-key"


class TokenRequest(Document):
    """An enrolled device asks for the tokens of an epoch, once."""

    code: Annotated[str, StringConstraints(pattern=r"^[!-~]{20,200}$")]
    epoch: Count
    blinded: Annotated[tuple[Blind, ...], Field(min_length=1, max_length=100)]
    evidence: (
        Evidence | None
    )  # for `token_format.bound_to`: that the device runs what it should; null where nothing says


class BlindSignatures(Document):
    """One for each blinded message, in their order."""

    epoch: Count
    signatures: Annotated[tuple[Blind, ...], Field(min_length=1, max_length=100)]
