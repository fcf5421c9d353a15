"""Clumsy uses of the commands end with a result or one good sentence, and touch no foreign file."""

from clumsy_campaign import Case, Desk, parametrised, run_case
from clumsy_others import CASES


@parametrised(CASES)
def test_it_ends_well(case: Case, desk: Desk) -> None:
    run_case(case, desk)
