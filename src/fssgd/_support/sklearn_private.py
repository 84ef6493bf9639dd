"""Everything that fssgd uses of scikit-learn's private names, in one place that a new release of it may break."""

from sklearn.utils._param_validation import Interval, Options, StrOptions, validate_parameter_constraints
from sklearn.utils.metadata_routing import _raise_for_params, _routing_enabled
from sklearn.utils.validation import _check_sample_weight, _get_feature_names

__all__ = [
    "Interval",
    "Options",
    "StrOptions",
    "_check_sample_weight",
    "_get_feature_names",
    "_raise_for_params",
    "_routing_enabled",
    "validate_parameter_constraints",
]
