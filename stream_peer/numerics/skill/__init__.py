"""How good were forecasts, once outcomes are known, and on how hard questions.

- ``isotonic``: what forecasts should have said, were only their order right
- ``murphy``: a Brier score split into miscalibration, discrimination and uncertainty
- ``reliability``: bins of a reliability diagram, with bands that tell chance from miscalibration
- ``difficulty``: loss beside the loss of a reference on the same questions
"""

from stream_peer.numerics.skill.difficulty import Skill, skill_score
from stream_peer.numerics.skill.isotonic import isotonic_fit
from stream_peer.numerics.skill.murphy import MurphyTerms, murphy_decomposition
from stream_peer.numerics.skill.reliability import ReliabilityBin, consistency_band, reliability_bins

__all__ = [
    "MurphyTerms",
    "ReliabilityBin",
    "Skill",
    "consistency_band",
    "isotonic_fit",
    "murphy_decomposition",
    "reliability_bins",
    "skill_score",
]
