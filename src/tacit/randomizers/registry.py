"""Every local randomizer by its one name: what settings may say and the ledger writes, what the contract tests run."""

from tacit.randomizers.k_ary import KaryRandomizedResponse
from tacit.randomizers.projective_geometry import ProjectiveGeometryResponse
from tacit.randomizers.randomizer import Randomizer
from tacit.randomizers.subset_selection import SubsetSelection

# Each is made from (domain, epsilon); `privacy/local_guarantee.py` vouches for what it promises.
RANDOMIZERS: dict[str, type[Randomizer]] = {
    each.name: each
    for each in (
        SubsetSelection,
        ProjectiveGeometryResponse,
        KaryRandomizedResponse,
    )
}
