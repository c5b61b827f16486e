"""Any loss over lists as the objective of boosted trees: LightGBM's and XGBoost's own training loops, our gradients."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from torchrank.data.batch_sampler import ListBatchSampler
from torchrank.errors import DataError, ShapeError, TorchRankError, check_number, check_option
from torchrank.losses import SLAMLoss
from torchrank.ops.ragged import ragged_index
from torchrank.types import ListLoss

#: ``objective(scores, dataset)`` to each document's gradient and second derivative
Objective = Callable[[NDArray[Any], Any], tuple[NDArray[np.float32], NDArray[np.float32]]]

HESSIANS = ("magnitude", "constant")
#: most lists laid side by side
_LISTS = 2048


class _Layout(NamedTuple):
    """Lists laid out as padded batches of like length, once for a whole training."""

    lengths: NDArray[np.int64]
    batches: list[tuple[Tensor, Tensor]]


def list_gradients(
    scores: Tensor, relevance: Tensor, lengths: NDArray[np.int64], loss: ListLoss | None = None
) -> Tensor:
    """Differentiate a loss of ragged lists, padded in batches of lists of like length.

    Args:
        scores: ``(N,)`` one score a document, the lists one after the other.
        relevance: ``(N,)`` at least 0.
        lengths: ``(Q,)`` integers, documents of each list.
        loss: sums the losses of its lists; ``SLAMLoss(reduction="sum")`` by default.

    Returns:
        ``(N,)`` the gradient of the sum over lists.

    Raises:
        ShapeError: lengths that do not add up to the documents.
        TorchRankError: a loss that does not sum.

    Example:
        >>> list_gradients(torch.zeros(3), torch.tensor([1.0, 0.0, 2.0]), np.array([2, 1]))
        tensor([-1.,  1.,  0.])
    """
    return _gradients(scores, relevance, _lay_out(np.asarray(lengths), len(scores)), _summing(loss))


def lightgbm_objective(
    loss: ListLoss | None = None, *, hessian: str = "magnitude", smoothing: float = 1.0
) -> Objective:
    """Make an objective for ``lightgbm.train`` from a loss over lists.

    The lists are the dataset's groups. Weights of its documents, or of its lists, multiply gradients and second
    derivatives.

    Args:
        loss: see :func:`list_gradients`.
        hessian: what stands for the second derivatives, which a hinge has none of: ``"magnitude"``, ``|g_i|`` plus
            ``smoothing`` times the mean ``|g|``, so that a leaf moves by at most the step size whatever the loss is
            measured in; or ``"constant"``, plain gradient descent in function space: 1 for every document.
        smoothing: of ``"magnitude"``, above 0: how much a document without gradient holds its leaf back.

    Returns:
        ``objective(scores, dataset)``, to be given as the parameter ``objective``.

    Raises:
        TorchRankError: a loss that does not sum, an unknown word, or a number out of range.

    Example:
        >>> import lightgbm
        >>> features, labels = np.arange(40.0).reshape(20, 2) % 7, np.tile([0, 1, 2, 0, 1], 4)
        >>> lists = lightgbm.Dataset(features, labels, group=[5, 5, 5, 5], params={"min_data_in_bin": 1})
        >>> options = {"objective": lightgbm_objective(), "verbose": -1, "min_data_in_leaf": 1}
        >>> lightgbm.train(options, lists, num_boost_round=3).predict(features).shape
        (20,)
    """
    return _objective(loss, hessian, smoothing, _lightgbm_lists)


def xgboost_objective(loss: ListLoss | None = None, *, hessian: str = "magnitude", smoothing: float = 1.0) -> Objective:
    """Make an objective for ``xgboost.train`` from a loss over lists, as :func:`lightgbm_objective` does.

    The lists are the groups (``qid`` or ``set_group``) of the ``DMatrix``.

    Args:
        loss: see :func:`list_gradients`.
        hessian: ``"magnitude"`` or ``"constant"``.
        smoothing: of ``"magnitude"``.

    Returns:
        ``objective(scores, dmatrix)``, to be given as ``obj``; set the parameter ``base_score`` to 0.

    Raises:
        TorchRankError: a loss that does not sum, an unknown word, or a number out of range.

    Example:
        >>> import xgboost
        >>> features, labels = np.arange(40.0).reshape(20, 2) % 7, np.tile([0, 1, 2, 0, 1], 4)
        >>> lists = xgboost.DMatrix(features, labels, qid=np.repeat([0, 1, 2, 3], 5))
        >>> options = {"base_score": 0, "min_child_weight": 0}
        >>> xgboost.train(options, lists, num_boost_round=3, obj=xgboost_objective()).predict(lists).shape
        (20,)
    """
    return _objective(loss, hessian, smoothing, _xgboost_lists)


def _objective(
    loss: ListLoss | None,
    hessian: str,
    smoothing: float,
    read: Callable[[Any], tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]],
) -> Objective:
    check_option("hessian", hessian, HESSIANS)
    check_number("smoothing", smoothing, above=0)
    summing = _summing(loss)
    kept: list[_Layout] = []

    def objective(scores: NDArray[Any], dataset: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        labels, weights, lengths = read(dataset)
        if not kept or not np.array_equal(kept[0].lengths, lengths):
            kept[:] = [_lay_out(lengths, len(labels))]
        flat = torch.from_numpy(np.ascontiguousarray(scores, dtype=np.float64).reshape(-1))
        relevance = torch.from_numpy(np.asarray(labels, dtype=np.float64))
        gradient = _gradients(flat, relevance, kept[0], summing).numpy()
        size = np.abs(gradient)
        # where nothing is left to learn the gradient is 0, and so is the step, for any second derivative above 0
        second = size + (smoothing * size.mean() or 1.0) if hessian == "magnitude" else np.ones_like(size)
        if len(weights):
            each = weights if len(weights) == len(size) else np.repeat(weights, lengths)
            gradient, second = gradient * each, second * each
        return gradient.astype(np.float32), second.astype(np.float32)

    return objective


def _summing(loss: ListLoss | None) -> ListLoss:
    """Refuse a loss that averages: its gradient would shrink as data grow."""
    given = SLAMLoss(reduction="sum") if loss is None else loss
    reduction = getattr(given, "reduction", "sum")
    if reduction != "sum":
        name = type(given).__name__
        raise TorchRankError(f"{name} has reduction={reduction!r}; trees are grown on {name}(…, reduction='sum')")
    return given


def _lay_out(lengths: NDArray[np.int64], documents: int) -> _Layout:
    if int(lengths.sum()) != documents or (len(lengths) and int(lengths.min()) < 1):
        raise ShapeError(f"the lists have {int(lengths.sum())} documents, the data {documents}; give lengths above 0")
    offsets = torch.from_numpy(np.append(0, np.cumsum(lengths)))
    batches = []
    for lists in ListBatchSampler(torch.from_numpy(lengths), batch_size=_LISTS):
        batches.append(ragged_index(offsets, lists, longest=int(lengths[lists.numpy()].max())))
    return _Layout(lengths, batches)


def _gradients(scores: Tensor, relevance: Tensor, layout: _Layout, loss: ListLoss) -> Tensor:
    flat = scores.detach().clone().requires_grad_()
    with torch.enable_grad():
        for places, mask in layout.batches:
            loss(flat[places], relevance[places], mask).backward()  # type: ignore[no-untyped-call] # of torch
    assert flat.grad is not None  # noqa: S101 - for the type checker: there is a list
    return flat.grad


def _lightgbm_lists(dataset: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """Labels, weights (none: empty) and lengths of lists."""
    group, weights = dataset.get_group(), dataset.get_weight()
    if group is None:
        raise DataError("the LightGBM dataset has no groups; give Dataset(…, group=[documents of each list])")
    return dataset.get_label(), np.zeros(0) if weights is None else weights, np.asarray(group, np.int64)


def _xgboost_lists(dmatrix: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """Labels, weights (none: empty) and lengths of lists."""
    starts = dmatrix.get_uint_info("group_ptr").astype(np.int64)
    if len(starts) < 2:
        raise DataError("the DMatrix has no groups; give DMatrix(…, qid=[query of each document])")
    return dmatrix.get_label(), dmatrix.get_weight(), np.diff(starts)
