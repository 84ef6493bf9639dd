"""learning_rate='auto' is 1 / L, or below it where L is only bounded: the loss never rises."""

import numpy as np
import pytest
import scipy.sparse as sp

from fssgd import LinearRegressorGD


def never_rises(curve):
    rounding = 1e-13 * curve[0]
    return bool((np.diff(curve) <= rounding).all())


def test_the_automatic_step_is_at_most_the_reciprocal_of_the_largest_eigenvalue(model):
    x = np.arange(100.0)
    fitted = model(standardize=False, max_iter=2000, tol=None).fit(x[:, None], 0.1 * x + 0.3)
    assert fitted.learning_rate_ <= 3.04484e-4 / 2 * (1 + 5e-6)  # six digits given
    exact = 2 * np.linalg.eigvalsh(
        np.cov(np.vstack([x, np.ones(100)]), ddof=0) + np.outer([x.mean(), 1], [x.mean(), 1])
    )
    assert fitted.learning_rate_ <= 1 / exact[-1] * (1 + 1e-12)
    assert never_rises(fitted.loss_curve_)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("n_columns", [2, 3])
def test_the_automatic_step_for_equal_largest_eigenvalues(model, standardize, n_columns):
    """The steepest direction is not unique here."""
    design = np.array([[-1, -1, 1], [-1, 1, -1], [1, -1, -1], [1, 1, 1]])[:, :n_columns] * 3.0
    fitted = model(standardize=standardize, max_iter=200, tol=None).fit(design, [1.0, 4.0, -2.0, 7.0])
    largest = 2.0 if standardize else 18.0
    assert fitted.learning_rate_ == pytest.approx(1 / largest, rel=1e-14)
    assert never_rises(fitted.loss_curve_)


@pytest.mark.parametrize("eigenvalues", [[4, 4], [4, 4 * (1 - 1e-6)], [4, 1e-3]])
def test_the_automatic_step_for_data_too_large_to_decompose(eigenvalues):
    n = 5000  # X'X is diagonal, so that its two largest eigenvalues are known
    diagonal = np.full(n, 1e-6)
    diagonal[:2] = np.sqrt(np.multiply(eigenvalues, n / 2))
    X = sp.diags_array(diagonal, format="csr")
    fitted = LinearRegressorGD(standardize=False, fit_intercept=False, max_iter=20, tol=None).fit(X, np.ones(n))
    assert fitted.backend_ == "numpy"
    assert 1 / (2 * 4) <= fitted.learning_rate_ <= 1 / 4 * (1 + 1e-12)  # an upper bound of L, at most 2 L
    assert never_rises(fitted.loss_curve_)
