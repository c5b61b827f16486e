"""How a ranking principal curve was fitted."""

from dataclasses import dataclass


@dataclass(frozen=True)
class CurveRun:
    """One start of the fit.

    Attributes:
        objectives: J at the start and after every iteration, over ``rows`` objects.
        projections: how often these objects were projected.
        converged: whether nothing was left to gain.
        rows: number of objects it saw: all, or a random sample of a larger table.
        optimum: which of the report's optima it ended in.
    """

    objectives: tuple[float, ...]
    projections: int
    converged: bool
    rows: int
    optimum: int


@dataclass(frozen=True)
class CurveOptimum:
    """One of the distinct curves that the starts ended in.

    Attributes:
        objective: J over all objects; over the sample for one that was too far from the best to be finished on all.
        starts: how many starts ended in it.
        spearman: rank correlation of its scores with the best optimum's.
    """

    objective: float
    starts: int
    spearman: float


@dataclass(frozen=True)
class CurveReport:
    """How a curve was fitted; J is in squared units of the scaled attributes.

    Attributes:
        solver: the solver's name.
        rows: number of objects.
        objectives: J over all objects at every iteration that led to the curve.
        converged: whether that run ended because nothing was left to gain.
        explained_variance: ``1 − J / Σ ‖x − x̄‖²`` in scaled units.
        monotone: whether the curve strictly improves in every attribute, so that dominance decides.
        runs: every start.
        optima: the distinct results, best first.
        dropped: names of constant attributes, which take no part.
        warnings: everything there was to warn of.
    """

    solver: str
    rows: int
    objectives: tuple[float, ...]
    converged: bool
    explained_variance: float
    monotone: bool
    runs: tuple[CurveRun, ...]
    optima: tuple[CurveOptimum, ...]
    dropped: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def objective(self) -> float:
        """J of the curve."""
        return self.objectives[-1]

    def __str__(self) -> str:
        ended = "converged" if self.converged else "stopped before it converged"
        steps = len(self.objectives) - 1
        lines = [
            f"{self.rows} objects, solver {self.solver}: J = {self.objective:.6g} after {steps} iterations, {ended}",
            f"explained variance {self.explained_variance:.4f}; strictly monotone: {'yes' if self.monotone else 'NO'}",
            f"{len(self.runs)} starts, {len(self.optima)} distinct optima:",
        ]
        lines += [
            f"  J = {o.objective:.6g} from {o.starts} starts, rank correlation with the best {o.spearman:.4f}"
            for o in self.optima
        ]
        return "\n".join([*lines, *(f"warning: {w}" for w in self.warnings)])
