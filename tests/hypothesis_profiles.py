"""How many examples properties are tried on: ``HYPOTHESIS_PROFILE`` names the profile.

``dev`` draws new examples each time, ``ci`` the same ones; ``nightly`` draws ten times as many, new ones each time.
No profile has a deadline: a busy machine is no fault.
"""

import os

import hypothesis

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "dev")


def examples(count: int) -> int:
    """As many examples as this profile tries where ``ci`` tries ``count``."""
    return 10 * count if PROFILE == "nightly" else count


hypothesis.settings.register_profile("dev", deadline=None, max_examples=50)
hypothesis.settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("nightly", deadline=None, max_examples=examples(50), print_blob=True)
hypothesis.settings.load_profile(PROFILE)
