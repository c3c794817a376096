"""What is promised, to whom, at what price: participation and strategy give an exact sensitivity, with the
clip norm and the noise a guarantee; a ledger of what was released gives it again; a statement says it to
people. NumPy and SciPy in double precision, no accelerator.
"""

from typing import TYPE_CHECKING

from tacit.doors import late

if TYPE_CHECKING:
    from tacit.privacy.guarantee import Guarantee
    from tacit.privacy.participation import Participation
    from tacit.privacy.strategy import Blt, Independent, Toeplitz, Tree
else:
    __getattr__ = late(
        __name__,
        {
            "Blt": "strategy",
            "Guarantee": "guarantee",
            "Independent": "strategy",
            "Participation": "participation",
            "Toeplitz": "strategy",
            "Tree": "strategy",
        },
    )

__all__ = ["Blt", "Guarantee", "Independent", "Participation", "Toeplitz", "Tree"]
