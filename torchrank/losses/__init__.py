"""Losses: a pure function and a thin module over it in one file each."""

from torchrank.losses.approx_ndcg import ApproxNDCGLoss, approx_ndcg_loss
from torchrank.losses.bpr import BPRLoss, bpr_loss
from torchrank.losses.bpr_max import BPRMaxLoss, bpr_max_loss
from torchrank.losses.in_batch_softmax import InBatchSoftmaxLoss, in_batch_softmax_loss
from torchrank.losses.lambda_loss import LambdaLoss, lambda_loss
from torchrank.losses.listmle import ListMLELoss, listmle_loss
from torchrank.losses.pairwise import (
    PairwiseHingeLoss,
    PairwiseLogisticLoss,
    pairwise_hinge_loss,
    pairwise_logistic_loss,
)
from torchrank.losses.pointwise import (
    PointwiseLogisticLoss,
    PointwiseSquaredLoss,
    pointwise_logistic_loss,
    pointwise_squared_loss,
)
from torchrank.losses.projection import ProjectionLoss, projection_loss
from torchrank.losses.sampled_softmax import SampledSoftmaxLoss, sampled_softmax_loss
from torchrank.losses.slam import SLAMLoss, slam_loss, slam_weights
from torchrank.losses.softmax import SoftmaxLoss, softmax_loss
from torchrank.losses.structured import (
    CRFLoss,
    StructuredHingeLoss,
    StructuredPerceptronLoss,
    crf_loss,
    structured_hinge_loss,
    structured_perceptron_loss,
)
from torchrank.losses.structured_ndcg import StructuredNDCGLoss, structured_ndcg_loss
from torchrank.losses.top1 import TOP1Loss, TOP1MaxLoss, top1_loss, top1_max_loss

# one name a line, sorted
__all__ = [
    "ApproxNDCGLoss",
    "BPRLoss",
    "BPRMaxLoss",
    "CRFLoss",
    "InBatchSoftmaxLoss",
    "LambdaLoss",
    "ListMLELoss",
    "PairwiseHingeLoss",
    "PairwiseLogisticLoss",
    "PointwiseLogisticLoss",
    "PointwiseSquaredLoss",
    "ProjectionLoss",
    "SLAMLoss",
    "SampledSoftmaxLoss",
    "SoftmaxLoss",
    "StructuredHingeLoss",
    "StructuredNDCGLoss",
    "StructuredPerceptronLoss",
    "TOP1Loss",
    "TOP1MaxLoss",
    "approx_ndcg_loss",
    "bpr_loss",
    "bpr_max_loss",
    "crf_loss",
    "in_batch_softmax_loss",
    "lambda_loss",
    "listmle_loss",
    "pairwise_hinge_loss",
    "pairwise_logistic_loss",
    "pointwise_logistic_loss",
    "pointwise_squared_loss",
    "projection_loss",
    "sampled_softmax_loss",
    "slam_loss",
    "slam_weights",
    "softmax_loss",
    "structured_hinge_loss",
    "structured_ndcg_loss",
    "structured_perceptron_loss",
    "top1_loss",
    "top1_max_loss",
]
