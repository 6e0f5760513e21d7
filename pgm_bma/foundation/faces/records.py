"""Parameters that belong together, as a frozen record which an estimator takes as one parameter.

scikit-learn sees into a record: ``get_params()`` of the estimator lists ``sampler__tol``, and ``set_params(sampler__tol=0.1)``
puts a changed copy of the record into this estimator. A record itself never changes, so many estimators may share one.
"""

from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

from pgm_bma.foundation.faces.validation import check_parameters


@dataclass(frozen=True, eq=False)
class ParameterRecord:
    """Base of the records; a child is a ``dataclass(frozen=True, kw_only=True, repr=False, eq=False)`` with its own `_rules`."""

    _rules: ClassVar[dict[str, Any]] = {}

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The fields by name.

        Parameters
        ----------
        deep : bool, default=True
            Not used: a record holds no further record.

        Returns
        -------
        dict
            Name -> value.
        """
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def set_params(self, **params: Any) -> Self:
        """A changed copy; the record itself stays as it is.

        Parameters
        ----------
        **params : dict
            Fields and their new values.

        Returns
        -------
        record
            The copy.
        """
        known = self.get_params()
        for name in params.keys() - known.keys():
            raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(known)}")
        return replace(self, **params)

    def check(self) -> None:
        """An error that names the field, its value and the cure, unless all values will do."""
        check_parameters(self)

    def __repr__(self) -> str:
        changed = [f for f in fields(self) if repr(getattr(self, f.name)) != repr(f.default)]
        return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in changed)})"

    # by what is shown: fields may hold arrays, which cannot be compared by ==
    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))


def with_records(estimator: Any, params: dict[str, Any], defaults: dict[str, ParameterRecord]) -> dict[str, Any]:
    """`params` of ``set_params`` where fields of records, "sampler__tol", are replaced by the changed record, "sampler".

    defaults : parameter -> the record that None stands for
    """
    plain = {name: value for name, value in params.items() if "__" not in name}
    changes: dict[str, dict[str, Any]] = {}
    for name, value in params.items():
        owner, separator, field = name.partition("__")
        if not separator:
            continue
        if owner in defaults:
            changes.setdefault(owner, {})[field] = value
        else:
            plain[name] = value
    for owner, fields_given in changes.items():
        record = plain.get(owner, getattr(estimator, owner))
        record = defaults[owner] if record is None else record
        if not isinstance(record, ParameterRecord):
            raise ValueError(f"{owner}={record!r} has no parameters; pass {type(defaults[owner]).__name__}(...)")
        plain[owner] = record.set_params(**fields_given)
    return plain
