"""Random programs with linear systems; ``benchmarks/solve_programs.py`` tests thousands."""

import pytest
import solve_programs


@pytest.mark.parametrize("seed", [12, 13, 28])
def test_random_programs_with_systems(seed):
    solve_programs.check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_more_random_programs_with_systems(seed):
    solve_programs.check(seed)
