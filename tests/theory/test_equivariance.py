import itertools

import pytest
import torch

from torchrank.models import LinearScorer
from torchrank.theory import equivariant_linear_maps, split_equivariant_map


@pytest.mark.parametrize(("length", "features"), [(1, 3), (2, 1), (2, 3), (3, 2), (4, 2), (5, 1)])
def test_their_dimension_is_twice_the_features(length, features):
    basis = equivariant_linear_maps(length, features)
    assert len(basis) == (2 * features if length > 1 else features)
    flat = basis.flatten(1)
    torch.testing.assert_close(flat @ flat.T, torch.eye(len(basis)).double())


def test_the_basis_is_equivariant_under_every_permutation():
    x = torch.randn(4, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for weights in equivariant_linear_maps(4, 2):
        scores = torch.einsum("ikc,kc->i", weights, x)
        for p in itertools.permutations(range(4)):
            torch.testing.assert_close(torch.einsum("ikc,kc->i", weights, x[list(p)]), scores[list(p)])


def test_the_ranking_depends_on_a_alone():
    generator = torch.Generator().manual_seed(0)
    basis = equivariant_linear_maps(5, 3)
    scorer = LinearScorer(3).double()
    for _ in range(20):
        weights = torch.einsum("n,nikc->ikc", torch.randn(6, generator=generator, dtype=torch.float64), basis)
        x = torch.randn(5, 3, generator=generator, dtype=torch.float64)
        a, b = split_equivariant_map(weights)
        scores = torch.einsum("ikc,kc->i", weights, x)
        torch.testing.assert_close(scores, x @ a + x.sum(0) @ b)
        with torch.no_grad():
            next(scorer.parameters()).copy_(a.reshape_as(next(scorer.parameters())))
            assert torch.equal(scores.argsort(), scorer(x[None])[0].argsort())


def test_every_pair_of_vectors_is_reached():
    """The basis spans {(a, b)}: splitting it loses nothing."""
    parts = torch.stack([torch.cat(split_equivariant_map(w)) for w in equivariant_linear_maps(3, 2)])
    assert torch.linalg.matrix_rank(parts) == 4


def test_refuses_other_maps():
    with pytest.raises(ValueError, match="not an equivariant map"):
        split_equivariant_map(torch.randn(3, 3, 2, generator=torch.Generator().manual_seed(0)))
    with pytest.raises(ValueError, match="shape"):
        split_equivariant_map(torch.zeros(3, 2, 2))
    with pytest.raises(ValueError, match="at least 1"):
        equivariant_linear_maps(0, 2)
