"""Bad input is refused with a message that says what was given and what to do."""

import math

import pytest
import torch

from torchrank import metrics
from torchrank.errors import DataError, ShapeError, TorchRankError

T = torch.tensor
FUNCTIONS = [
    metrics.auc,
    metrics.average_precision,
    metrics.err,
    metrics.hit_rate,
    metrics.mean_ndcg,
    metrics.ndcg,
    metrics.precision,
    metrics.recall,
    metrics.reciprocal_rank,
]
every_function = pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)


@every_function
def test_shapes_and_masks(function):
    with pytest.raises(ShapeError, match=r"scores have shape \(\)"):
        function(torch.tensor(0.0), torch.tensor(0.0))
    with pytest.raises(ShapeError, match=r"scores have shape \(2, 3\) and relevance \(2, 4\)"):
        function(torch.zeros(2, 3), torch.zeros(2, 4))
    with pytest.raises(ShapeError, match=r"mask has shape \(3,\)"):
        function(torch.zeros(2, 3), torch.zeros(2, 3), torch.ones(3, dtype=torch.bool))
    with pytest.raises(ShapeError, match="boolean mask"):
        function(torch.zeros(2, 3), torch.zeros(2, 3), torch.ones(2, 3))


@every_function
def test_values(function):
    scores = torch.zeros(70_001, 3)
    scores[-1, 1] = math.nan
    with pytest.raises(DataError, match=r"index \(70000, 1\) is NaN"):  # counted over all chunks
        function(scores, torch.ones(70_001, 3))
    for grade in (-1.0, math.nan, math.inf):
        with pytest.raises(DataError, match="relevance must be"):
            function(torch.zeros(1, 2), T([[1.0, grade]]))
    with pytest.raises(DataError, match="found -2"):
        function(torch.zeros(1, 2), T([[1, -2]]))


@every_function
def test_options(function):
    lists = torch.zeros(1, 3), torch.ones(1, 3)
    with pytest.raises(TorchRankError, match="did you mean 'stable'"):
        function(*lists, ties="stabel")
    with pytest.raises(TorchRankError, match="did you mean 'skip'"):
        function(*lists, empty="skipp")
    if function is not metrics.mean_ndcg:
        for k in (0, -1, 2.5, True):
            with pytest.raises(TorchRankError, match=f"k={k}"):
                function(*lists, k=k)


@pytest.mark.parametrize(
    ("function", "option"),
    [
        (metrics.ndcg, {"gain": "exp"}),
        (metrics.ndcg, {"discount": "log"}),
        (metrics.ndcg, {"ideal": "lists"}),
        (metrics.ndcg, {"retrieved": 0}),
        (metrics.ndcg, {"ideal": "retrieved", "ties": "mean"}),
        (metrics.mean_ndcg, {"gain": "exp"}),
        (metrics.mean_ndcg, {"discount": "log"}),
        (metrics.average_precision, {"normalize": "hit"}),
        (metrics.err, {"max_grade": 0}),
        (metrics.err, {"max_grade": math.inf}),
    ],
)
def test_options_of_one_measure(function, option):
    with pytest.raises(TorchRankError, match=next(iter(option))):
        function(torch.zeros(1, 3), torch.ones(1, 3), **option)


def test_a_grade_beyond_the_scale_of_err():
    with pytest.raises(DataError, match="relevance must be from 0 to 4, found 5"):
        metrics.err(torch.zeros(1, 2), T([[5, 0]]))


@every_function
def test_what_is_no_tensor_of_numbers(function):
    scores, labels = torch.rand(2, 3), torch.ones(2, 3)
    for given in (
        (scores.numpy(), labels),
        (scores, labels.tolist()),
        (scores, None),
        (scores, labels, [[True] * 3] * 2),
    ):
        with pytest.raises(ShapeError, match="give a tensor"):
            function(*given)
    with pytest.raises(ShapeError, match=r"both must be \(\.\.\., L\)"):
        function(T(1.0), T(1.0))
    with pytest.raises(ShapeError, match="uint16"):
        function(scores.to(torch.uint16), labels)
    with pytest.raises(ShapeError, match="complex64"):
        function(scores, labels + 0j)
    with pytest.raises(ShapeError, match="relevance is on meta"):
        function(scores, labels.to("meta"))


@pytest.mark.parametrize("weights", [[1.0, 2.0], 1.0, T([1.0, -1.0]), T([1.0, math.nan]), T([math.inf, 1.0])], ids=str)
def test_weights_no_mean_can_be_weighted_by(weights):
    metric = metrics.NDCG()
    with pytest.raises((ShapeError, DataError), match="list_weights"):
        metric.update(torch.rand(2, 3), torch.ones(2, 3), None, weights)


@pytest.mark.parametrize("grade", ["four", None, True, []], ids=str)
def test_a_highest_grade_that_is_no_number(grade):
    with pytest.raises(TorchRankError, match=r"max_grade=.* must be a finite number above 0"):
        metrics.ERR(max_grade=grade)
