"""What a program says of its failure, until it is masked."""

import sys

from deploy.support.masking import MASK, Masking
from deploy.support.program import output_of

SECRET = "sEcReT-of-this-test"


async def test_case_1423_a_secret_at_the_end_of_a_long_cause_is_masked_whole() -> None:
    # The cause was cut before it was masked, so that the first half of a secret at the cut was left.
    said = "x" * 290 + SECRET
    fault = (await output_of([sys.executable, "-c", f"import sys; sys.exit({said!r})"], 30)).fault
    assert fault == f"ended with 1: {said}"
    assert Masking([SECRET]).masked(fault.encode()).endswith(b"x" + MASK)
