"""How a class becomes an estimator."""

import inspect
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from mmcnb.estimators.parameters import RUNTIME_DOCS

if TYPE_CHECKING:  # the type checker sees a dataclass
    from dataclasses import dataclass as estimator
else:

    def estimator(cls: type | None = None, *, kw_only: bool = False) -> Any:
        """Make a class an estimator: its fields are its parameters, followed by those that all classes share.

        Parameters
        ----------
        cls : type or None, default=None
            The class; ``{runtime}`` in its docstring becomes the documentation of the shared parameters.
        kw_only : bool, default=False
            Whether its parameters are keyword-only.

        Returns
        -------
        type
            The class, with its ``__init__``.
        """
        if cls is None:
            return partial(estimator, kw_only=kw_only)
        made: Any = dataclass(cls, eq=False, repr=False, kw_only=kw_only)
        shared = [*RUNTIME_DOCS][: None if "checkpoint" in made.__dataclass_fields__ else -1]
        made.__doc__ = (made.__doc__ or "").replace(
            "{runtime}", "\n    ".join(RUNTIME_DOCS[name] for name in shared)
        )
        signature = inspect.signature(made.__init__)
        order = sorted(signature.parameters.values(), key=lambda parameter: parameter.name in shared)
        made.__init__.__signature__ = signature.replace(parameters=order)
        return made
