import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dpn_plugin.data import Samples, fingerprint, hold_out
from dpn_plugin.errors import UserError


def numbered(labels):
    count = len(labels)
    return Samples(torch.arange(count).float()[:, None], torch.tensor(labels), "numbered")


@given(
    st.lists(st.integers(-1, 4), min_size=1, max_size=80), st.floats(0.05, 0.95), st.integers(0, 99)
)
def test_the_parts_are_disjoint_complete_ordered_and_stratified(labels, fraction, seed):
    samples = numbered(labels)
    if len(labels) == len(set(labels)):
        with pytest.raises(UserError, match="too few samples"):
            hold_out(samples, fraction, seed)
        return
    stay, held = hold_out(samples, fraction, seed)
    rows = [part.inputs[:, 0].tolist() for part in (stay, held)]
    assert sorted(rows[0] + rows[1]) == list(range(len(labels)))
    assert all(row == sorted(row) for row in rows)
    for label in set(labels):
        count, mine = labels.count(label), int((held.labels == label).sum())
        assert abs(mine - fraction * count) <= 1
        assert count < 2 or 1 <= mine < count


def test_the_seed_decides(images):
    parts = [fingerprint(hold_out(images, 0.2, seed)[1]) for seed in (0, 0, 1)]
    assert parts[0] == parts[1] != parts[2]


@pytest.mark.parametrize("fraction", [0, 1, -0.1, float("nan")])
def test_a_fraction_outside_is_refused(images, fraction):
    with pytest.raises(UserError, match="fraction must be between 0 and 1"):
        hold_out(images, fraction, 0)
